"""Making a long conversation short: what the model is asked, and how the answer goes back in.

Rules: the summary travels in an item's ``encrypted_content``, which
:class:`~atem.responses.blob.Blobs` makes and reads. From then on it stands for
what the model did before it; what everybody else said stays as it was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .faults import bad_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .inputs import Item

REQUEST: Final = (
    "Write a summary of this conversation for whoever continues it without having seen it. Say "
    "what was asked, what was decided and why, what was done and with which results, and what is "
    "left to do. Keep names, paths, numbers and open questions exactly as they are. Write the "
    "summary alone, and call no tool."
)
"""The last message of a compaction turn."""

SUMMARY: Final = "[Summary of the conversation before this point]\n{}"
"""How a summary is shown."""

ITEM: Final = "compaction"
TRIGGER: Final = "compaction_trigger"

STAYING: Final = ("additional_tools", "configuration_update", ITEM)
"""Types of items that a summary doesn't stand for, beside messages that aren't the model's."""


def wanted(items: Sequence[Item]) -> bool:
    """Whether the newest item asks for a summary. Raises ApiError for a new one before others."""
    for item in items[:-1]:
        if item.type == TRIGGER and item.where.startswith("input"):
            raise bad_value(item.where, f"{item.where}: a {TRIGGER} is the last item of an input.")
    return bool(items) and items[-1].type == TRIGGER


def shortened(items: Sequence[Item]) -> list[Item]:
    """``items`` without what the newest summary among them stands for."""
    places = [place for place, item in enumerate(items) if item.type == ITEM]
    newest = places[-1] if places else 0
    return [item for item in items[:newest] if _stays(item)] + list(items[newest:])


def _stays(item: Item) -> bool:
    said = item.type == "message" and item.fields.get("role") != "assistant"
    return said or item.type in STAYING
