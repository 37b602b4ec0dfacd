"""What a caller may put where: a table of accepted types for each kind of input.

Rules: types only. What a value means, and whether the wire can carry it, is for
whoever reads it; this is asked first, so that nobody else has to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import repr as short_repr
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import AtemError, OptionError, RenderError
from ..messages import Message, RejectedCall, ToolCall


class Accepted(NamedTuple):
    """The types of a field, and how an error calls them."""

    types: tuple[type, ...]
    words: str


Table: TypeAlias = Mapping[str, Accepted]
"""Field -> what it may hold; a field that is missing holds None."""

TEXT: Final = Accepted((str,), "a string")
OPTIONAL_TEXT: Final = Accepted((str, NoneType), "a string, or None")
OPTIONAL_FLAG: Final = Accepted((bool, NoneType), "True, False or None")

CHAT_MESSAGE: Final[Table] = {
    "name": OPTIONAL_TEXT,
    "tool_call_id": OPTIONAL_TEXT,
    "recipient": OPTIONAL_TEXT,
    "end_turn": OPTIONAL_FLAG,
}
CHAT_CALL: Final[Table] = {"id": OPTIONAL_TEXT}
ITEM_CALL: Final[Table] = {"name": TEXT, "call_id": TEXT, "namespace": OPTIONAL_TEXT}

MESSAGE: Final[Table] = {
    "role": TEXT,
    "recipient": OPTIONAL_TEXT,
    "calls": Accepted((tuple, list), "a tuple of ToolCall and RejectedCall"),
    "name": OPTIONAL_TEXT,
    "call_id": OPTIONAL_TEXT,
    "end_turn": OPTIONAL_FLAG,
}
TEXT_PART: Final[Table] = {"text": TEXT}
CALLS: Final[Mapping[type, Table]] = {
    ToolCall: {
        "id": TEXT,
        "name": TEXT,
        "namespace": OPTIONAL_TEXT,
        "raw_name": TEXT,
        "arguments": Accepted((Mapping,), "a dict"),
    },
    RejectedCall: {"raw_name": TEXT, "text": TEXT},
}

OPTIONS: Final[Table] = {
    "channel": OPTIONAL_TEXT,
    "add_generation_prompt": Accepted((bool,), "True or False"),
    "current_date": OPTIONAL_TEXT,
    "knowledge_cutoff": OPTIONAL_TEXT,
    "tool_namespace_descriptions": Accepted((Mapping, NoneType), "a dict of strings, or None"),
}


def check_fields(fields: Mapping[str, Any], table: Table, where: str) -> None:
    """Raise RenderError for the first field of another type than the table's."""
    _check(fields, table, f"{where}.", RenderError)


def check_message(message: object, where: str) -> None:
    """Raise RenderError for what is no Message, and for one with a field of another type."""
    if not isinstance(message, Message):
        raise RenderError(
            f"{where} is a {type(message).__name__}; expected a Message (from_chat and from_items "
            "make them from dicts)"
        )
    check_object(message, MESSAGE, where)
    for place, call in enumerate(message.calls):
        _check_call(call, f"{where}.calls[{place}]")


def check_object(given: object, table: Table, where: str) -> None:
    """:func:`check_fields` for an object's attributes."""
    check_fields({field: getattr(given, field) for field in table}, table, where)


def check_options(**options: object) -> None:
    """Raise OptionError for the first option of another type than its own."""
    _check(options, OPTIONS, "", OptionError)
    descriptions: Any = options["tool_namespace_descriptions"] or {}
    _check(descriptions, dict.fromkeys(descriptions, TEXT), "the description of ", OptionError)


def as_sequence(given: object, what: str) -> tuple[Any, ...]:
    """The members of ``given``. Raises RenderError for what is a single thing or has none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise RenderError(
            f"{what} must be a sequence, not {short_repr(given)} ({type(given).__name__}); "
            "put a single one in a list"
        )
    return tuple(given)


def _check_call(call: object, where: str) -> None:
    table = next((CALLS[kind] for kind in CALLS if isinstance(call, kind)), None)
    if table is None:
        words = "a ToolCall or RejectedCall"
        raise RenderError(f"{where} is a {type(call).__name__}; expected {words}")
    check_object(call, table, where)


def _check(fields: Mapping[str, Any], table: Table, prefix: str, error: type[AtemError]) -> None:
    for field, accepted in table.items():
        value = fields.get(field)
        if not isinstance(value, accepted.types):
            found = f"{short_repr(value)} ({type(value).__name__})"
            raise error(f"{prefix}{field} is {found}; expected {accepted.words}")
