"""Responses items as :class:`~atem.messages.Message` objects.

Rules: the items of the OpenAI Responses API that are conversation; those that need a store
or a server (references, compaction, hosted tools) are refused here, because
whoever has the store resolves them first. ``namespace`` and ``name`` of a call
stay two fields and meet only on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

from .. import wire
from ..errors import RenderError
from ..messages import Message, TextPart
from ..tools.definition import CUSTOM_INPUT
from .accepted import ITEM_CALL, as_sequence, check_fields
from .fields import REASONING_KEYS, Fields, as_fields, make_call, read_content, text_at
from .prompt import as_parts

Reader: TypeAlias = Callable[[Fields, str], Message | None]
"""``(item, where it stands) -> message``, None for nothing to show."""

ROLES: Final = ("system", "developer", "user", "assistant")

CHAT_KEYS: Final = ("tool_calls", "function_call", *REASONING_KEYS)
"""What a chat message says beside its content, and items say as items of their own."""


def from_items(items: Iterable[Any]) -> tuple[Message, ...]:
    """Responses input or output items (dicts, or pydantic objects) as messages.

    System and developer messages at the beginning become one system message,
    a blank line between them. Reasoning is the item's content, else its summary;
    an item with neither, such as one with another provider's encrypted
    content, is nothing to show. Raises RenderError for an unknown type, for an
    output without its call, and for arguments that are not the JSON of an object.
    """
    calls: set[str | None] = set()
    found: list[Message] = []
    for place, item in enumerate(as_sequence(items, "items")):
        where = f"items[{place}]"
        fields = as_fields(item, where)
        message = _reader(fields, where)(fields, where)
        if message is None:
            continue
        if message.role == "tool" and message.call_id not in calls:
            raise RenderError(f"{where}.call_id {message.call_id!r} matches no call before it")
        calls.update(call.id for call in message.calls)
        found.append(message)
    return _merge_leading(found)


def _merge_leading(messages: Sequence[Message]) -> tuple[Message, ...]:
    leading = list(takewhile(lambda message: message.role in ROLES[:2], messages))
    if len(leading) < 2:
        return tuple(messages)
    parts = [TextPart("\n\n"), *as_parts(leading[0].content)]
    for message in leading[1:]:
        parts += (TextPart("\n\n"), *as_parts(message.content))
    return (Message("system", tuple(parts[1:])), *messages[len(leading) :])


def _reader(fields: Fields, where: str) -> Reader:
    kind = fields.get("type", "message" if "role" in fields else None)
    if not isinstance(kind, str) or kind not in READERS:
        raise RenderError(
            f"{where} has type {kind!r}, which is not rendered; types are {', '.join(READERS)}"
        )
    return READERS[kind]


def _message(fields: Fields, where: str) -> Message:
    role = fields.get("role")
    if role not in ROLES:
        raise RenderError(f"{where} has the role {role!r}; roles of items are {', '.join(ROLES)}")
    if lost := [key for key in CHAT_KEYS if fields.get(key)]:
        raise RenderError(
            f"{where} has {lost[0]!r}, which is no part of an item; make it an item of its own, or "
            "read the conversation with from_chat"
        )
    content = read_content(fields.get("content"), f"{where}.content")
    return Message(role, content, recipient=wire.USER if role == wire.ASSISTANT else None)


def _reasoning(fields: Fields, where: str) -> Message | None:
    for key in ("content", "summary"):
        parts = as_parts(read_content(fields.get(key), f"{where}.{key}"))
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        if text:
            return Message("assistant", text, recipient=wire.SELF)
    return None


def _function_call(fields: Fields, where: str) -> Message:
    return _call(fields, fields.get("arguments"), where)


def _custom_call(fields: Fields, where: str) -> Message:
    return _call(fields, {CUSTOM_INPUT: text_at(fields, "input", where)}, where)


def _call(fields: Fields, arguments: Any, where: str) -> Message:
    check_fields(fields, ITEM_CALL, where)
    made = make_call(
        fields["name"],
        arguments,
        where=where,
        call_id=fields["call_id"],
        namespace=fields.get("namespace") or None,
        index=0,
    )
    return Message("assistant", recipient=made.recipient, calls=(made,))


def _output(fields: Fields, where: str) -> Message:
    output = read_content(fields.get("output"), f"{where}.output")
    return Message("tool", output, call_id=text_at(fields, "call_id", where))


READERS: Final[dict[str, Reader]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
}
