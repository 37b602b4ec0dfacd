"""The items of a request's ``input``, in the one form that is stored and read.

Rules: tolerant where clients differ (responses.md 1.4): a string is a user
message, an item with a role is a message, null is the same as nothing. An item
keeps what its client said; it gets an id, a type, and parts for its content.
Whether it makes sense where it stands is :mod:`~atem.responses.script`'s
question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from . import hosted
from .faults import bad_value, missing, not_found

Lookup: TypeAlias = Callable[[str], Mapping[str, Any] | None]
"""A stored item by its id, of this client and nobody else; None if there is none."""

NewId: TypeAlias = Callable[[str], str]
"""A new id with a prefix such as "msg"."""

MAX_ITEMS: Final = 20_000
MAX_ID: Final = 256

ROLES: Final = ("user", "system", "developer", "assistant")
LEADING_ROLES: Final = ("system", "developer")

PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "additional_tools": "at",
    "compaction": "cmp",
    "compaction_trigger": "cmt",
    "configuration_update": "cfg",
}
"""Item type -> the prefix of its ids. With :data:`hosted.TYPES` these are all that is known."""

WITH_STATUS: Final = (
    "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "tool_search_call", "tool_search_output",
)  # fmt: skip

OUTPUT_TEXT: Final[dict[str, list[Any]]] = {"annotations": [], "logprobs": []}
"""What an assistant's text has beside its text."""


class Item(NamedTuple):
    """One item, and where it stands in the request (``input[3]``) or in what went before."""

    where: str
    fields: dict[str, Any]

    @property
    def type(self) -> str:
        """What it is."""
        return str(self.fields["type"])


def read_input(given: Any, *, lookup: Lookup | None, new_id: NewId) -> tuple[list[Item], list[str]]:
    """The items of ``input``, and notes on those of unknown types, which are left out.

    Raises ApiError for what is no item, for a reference to nothing, and for more than 20,000.
    """
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list | tuple):
        raise bad_value("input", f"input is a {type(given).__name__}; it is text or an array.")
    if len(given) > MAX_ITEMS:
        raise bad_value("input", f"input has {len(given)} items; at most {MAX_ITEMS} are taken.")
    items: list[Item] = []
    notes: list[str] = []
    taken: set[str] = set()
    for place, raw in enumerate(given):
        where = f"input[{place}]"
        fields = _resolved(raw, where, lookup)
        if fields["type"] in PREFIXES or fields["type"] in hosted.TYPES:
            item = _normal(fields, where, taken, new_id)
            taken.add(item["id"])
            items.append(Item(where, item))
        else:
            notes.append(f"{where} has the unknown type {fields['type'][:48]!r} and is left out")
    return items, notes


def read_history(history: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Items of earlier requests and responses, as they were stored."""
    return [Item(f"history[{place}]", dict(item)) for place, item in enumerate(history)]


def _resolved(raw: Any, where: str, lookup: Lookup | None) -> dict[str, Any]:
    """The item itself, its type filled in; of a reference, what it refers to."""
    if isinstance(raw, str):
        raw = {"role": "user", "content": raw}
    if not isinstance(raw, Mapping):
        raise bad_value(where, f"{where} is a {type(raw).__name__}; an item is an object.")
    kind = raw.get("type")
    if kind is None:
        kind = _guessed(raw, where)
    if not isinstance(kind, str):
        raise bad_value(f"{where}.type", f"{where}.type is a {type(kind).__name__}, not a string.")
    if kind != "item_reference":
        return {**raw, "type": kind}
    found = lookup(_id(raw, where)) if lookup else None
    if found is None:
        shown = _id(raw, where)[:MAX_ID]
        raise not_found(f"Item with id {shown!r} not found.", param=f"{where}.id")
    return {**found, "type": found.get("type") or "message"}


def _guessed(raw: Mapping[str, Any], where: str) -> str:
    if raw.get("role") is not None:
        return "message"
    if isinstance(raw.get("id"), str):
        return "item_reference"
    raise missing(f"{where}.type")


def _id(raw: Mapping[str, Any], where: str) -> str:
    if not isinstance(raw.get("id"), str):
        raise missing(f"{where}.id")
    return str(raw["id"])


def _normal(fields: dict[str, Any], where: str, taken: set[str], new_id: NewId) -> dict[str, Any]:
    kind = fields["type"]
    given = fields.get("id")
    # An id may be foreign, and is no more than a name in a list: it has to be the only one there.
    usable = isinstance(given, str) and 0 < len(given) <= MAX_ID and given not in taken
    item = {**fields, "id": given if usable else new_id(PREFIXES.get(kind, "item"))}
    if kind == "message":
        item |= _message(fields, where)
    elif kind in WITH_STATUS:
        item["status"] = fields.get("status") or "completed"
    return item


def _message(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    role = fields.get("role")
    if role not in ROLES:
        said = "missing" if role is None else repr(str(role)[:48])
        raise bad_value(f"{where}.role", f"{where}.role is {said}; roles are {', '.join(ROLES)}.")
    content = fields.get("content")
    parts = content if isinstance(content, list | tuple) else [content or ""]
    answer = role == "assistant"
    return {
        "status": fields.get("status") or "completed",
        "content": [_stored_part(part, answer=answer) for part in parts],
    }


def _stored_part(part: Any, *, answer: bool) -> Any:
    """A text as the part that its direction has; anything else stays what it is."""
    fields = {"text": part} if isinstance(part, str) else part
    if not isinstance(fields, Mapping) or fields.get("type") not in (None, *TEXTS):
        return part
    if not isinstance(fields.get("text"), str):
        return part
    if not answer:
        return {**fields, "type": "input_text"}
    extra = {key: fields.get(key) or default for key, default in OUTPUT_TEXT.items()}
    return {**fields, **extra, "type": "output_text"}


TEXTS: Final = ("text", "input_text", "output_text", "summary_text")
