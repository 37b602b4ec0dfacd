"""Making a long conversation short: what the model is asked, and how the answer goes back in.

Rules: text only. The summary travels in an item's ``encrypted_content``, which
:class:`~atem.responses.blob.Blobs` makes and reads.
"""

from __future__ import annotations

from typing import Final

REQUEST: Final = (
    "Write a summary of this conversation for whoever continues it without having seen it. Say "
    "what was asked, what was decided and why, what was done and with which results, and what is "
    "left to do. Keep names, paths, numbers and open questions exactly as they are. Write the "
    "summary alone, and call no tool."
)
"""The last message of a compaction turn."""

SUMMARY: Final = "[Summary of the conversation before this point]\n{}"
"""How a summary is shown."""
