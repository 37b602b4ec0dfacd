"""The agent: tools that work in a folder, and what runs them.

Rules: whatever touches the machine is here and nowhere below. A tool is a plain
typed function; it reads and writes inside one folder, and what it can't do is an
exception whose text is a sentence for the model.
"""

from __future__ import annotations

from .calculate import calculate
from .files import file_tools
from .folder import Folder

__all__ = ["Folder", "calculate", "file_tools"]
