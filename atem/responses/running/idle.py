"""What stands in for a step where none has come yet.

Rules: an iterator of steps that gives ``IDLE`` in place of waiting lets whoever
reads a response do something else meanwhile; its batch is empty. Everybody on
the way passes it on as it is.
"""

from __future__ import annotations

from typing import Final

from ...engine import Step

IDLE: Final = Step()
"""No token, no text, no end; known by what it is, not by what is in it."""
