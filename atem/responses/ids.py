"""Ids of responses, items and calls.

Rules: an id is a prefix and random hex, made once and never again: an item keeps
its id from the event that announces it to the store. Whoever needs other ids
(tests, a store of its own) passes another callable of the same shape.
Source: responses.md 1.2.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex
from typing import Final, TypeAlias

NewId: TypeAlias = Callable[[str], str]
"""``prefix -> id``; each id is new."""

BYTES: Final = 16

RESPONSE: Final = "resp"
MESSAGE: Final = "msg"
REASONING: Final = "rs"
FUNCTION_CALL: Final = "fc"
CUSTOM_CALL: Final = "ctc"
SEARCH_CALL: Final = "tsc"
SEARCH_OUTPUT: Final = "tso"
COMPACTION: Final = "cmp"
CALL: Final = "call"
"""What ties a call to its output; another string than the item's id."""


def new_id(prefix: str) -> str:
    """``prefix_`` and 32 random hex digits."""
    return f"{prefix}_{token_hex(BYTES)}"
