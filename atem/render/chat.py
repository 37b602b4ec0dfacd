"""OpenAI chat messages as :class:`~atem.messages.Message` objects.

Rules: one chat message becomes one or more messages of the wire, in the order
reasoning, content, calls. Which of them end a turn follows the model's template
(wire_format 2). Keys that carry no content (``annotations``, ids, a user's
``name``) are not part of a prompt; keys that do are read or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..errors import RenderError
from ..messages import Message, Part, Role
from .accepted import CHAT_CALL, CHAT_MESSAGE, as_sequence, check_fields
from .fields import REASONING_KEYS, Fields, as_fields, is_empty, make_call, read_content, text_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

REFUSED_KEYS: Final = {
    "function_call": "use tool_calls",
    "audio": "the model reads no audio",
    "images": "write images as parts of the content",
    "videos": "write videos as parts of the content",
}
"""Keys whose content would be lost -> what to do instead."""

ASSISTANT_KEYS: Final = (*REASONING_KEYS, "tool_calls", "refusal", "recipient")
"""Keys that say something in an assistant's message, and would be lost in another's."""


def from_chat(messages: Iterable[Any]) -> tuple[Message, ...]:
    """Chat Completions messages (dicts, or pydantic objects) as messages.

    Raises RenderError for an unknown role, for content or a field of an unknown
    type, for what only an assistant's message can say in another's, and for
    arguments that are not the JSON of an object.
    """
    found: list[Message] = []
    for place, item in enumerate(as_sequence(messages, "chat messages")):
        where = f"messages[{place}]"
        fields = as_fields(item, where)
        read = _reader(fields.get("role"), where)
        _check(fields, where)
        found += read(fields, where)
    return tuple(found)


def _reader(role: object, where: str) -> Callable[[Fields, str], Iterator[Message]]:
    if not isinstance(role, str) or role not in READERS:
        raise RenderError(f"{where} has the role {role!r}; roles are {', '.join(READERS)}")
    return READERS[role]


def _check(fields: Fields, where: str) -> None:
    check_fields(fields, CHAT_MESSAGE, where)
    lost = [key for key in ASSISTANT_KEYS if fields.get(key)]
    if lost and fields["role"] != wire.ASSISTANT:
        raise RenderError(
            f"{where} has the role {fields['role']!r} and {lost[0]!r}, which only an assistant's "
            "message can say; leave it out, or correct the role"
        )


def _plain(role: Role) -> Callable[[Fields, str], Iterator[Message]]:
    def read(fields: Fields, where: str) -> Iterator[Message]:
        yield Message(role, _content(fields, where))

    return read


def _tool(fields: Fields, where: str) -> Iterator[Message]:
    name, call_id = fields.get("name") or None, fields.get("tool_call_id")
    yield Message("tool", _content(fields, where), name=name, call_id=call_id)


def _assistant(fields: Fields, where: str) -> Iterator[Message]:
    if reasoning := _reasoning(fields, where):
        yield Message("assistant", reasoning, recipient=wire.SELF)
    content = _answer(fields, where)
    recipient = fields.get("recipient") or wire.USER
    calls = as_sequence(fields.get("tool_calls") or (), f"{where}.tool_calls")
    if not calls:
        ends = fields.get("end_turn")
        ends = recipient == wire.USER if ends is None else ends
        yield Message("assistant", content, recipient=recipient, end_turn=ends)
        return
    if not is_empty(content):
        yield Message("assistant", content, recipient=recipient, end_turn=False)
    for place, call in enumerate(calls):
        yield _call(call, place, f"{where}.tool_calls[{place}]")


READERS: Final[dict[str, Callable[[Fields, str], Iterator[Message]]]] = {
    "system": _plain("system"),
    "developer": _plain("developer"),
    "user": _plain("user"),
    "assistant": _assistant,
    "tool": _tool,
}


def _content(fields: Fields, where: str) -> str | tuple[Part, ...]:
    for key, advice in REFUSED_KEYS.items():
        if fields.get(key):
            raise RenderError(f"{where} has {key!r}, which can't be rendered: {advice}")
    return read_content(fields.get("content"), f"{where}.content")


def _answer(fields: Fields, where: str) -> str | tuple[Part, ...]:
    """Content, or the refusal that stands in its place."""
    content, refusal = _content(fields, where), fields.get("refusal")
    if refusal and not is_empty(content):
        raise RenderError(f"{where} has content and a refusal; keep one of them")
    return text_at(fields, "refusal", where) if refusal else content


def _reasoning(fields: Fields, where: str) -> str:
    given = {key: fields[key] for key in REASONING_KEYS if fields.get(key)}
    texts = dict.fromkeys(text_at(fields, key, where) for key in given)
    if len(texts) > 1:
        raise RenderError(f"{where} has different texts under {' and '.join(given)}; keep one")
    return next(iter(texts), "")


def _call(call: Any, place: int, where: str) -> Message:
    fields = as_fields(call, where)
    check_fields(fields, CHAT_CALL, where)
    function = as_fields(fields.get("function"), f"{where}.function")
    made = make_call(
        text_at(function, "name", f"{where}.function"),
        function.get("arguments"),
        where=f"{where}.function",
        call_id=fields.get("id") or "",
        index=place,
    )
    return Message("assistant", recipient=made.recipient, calls=(made,))
