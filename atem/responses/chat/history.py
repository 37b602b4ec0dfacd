"""Chat messages as items.

Rules: a message becomes one item, an assistant's message one for each thing that
it says, in the order reasoning, answer, calls. What the Responses API refuses
about an item is left to it. The forms that this API gave up are refused, with
the form to use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...render.fields import REASONING_KEYS
from .. import checks
from ..faults import bad_value, missing, unsupported
from ..places import Placed

Message: TypeAlias = Mapping[str, Any]
Part: TypeAlias = dict[str, Any]

ASSISTANT: Final = "assistant"


def placed(messages: Any) -> list[Placed]:
    """The items that ``messages`` are, each with its place. Raises ApiError."""
    given = checks.array(messages, "messages")
    if not given:
        raise bad_value("messages", "messages is empty; there has to be one at least.")
    history = _History()
    for place, message in enumerate(given):
        history.read(message, f"messages[{place}]")
    return history.items


class _History:
    """What has been read so far."""

    def __init__(self) -> None:
        self.items: list[Placed] = []
        self.custom: set[str] = set()
        """Ids of the calls of custom tools: their results are items of another type."""

    def read(self, raw: Any, where: str) -> None:
        message = checks.mapping(raw, where)
        role = message.get("role")
        if not isinstance(role, str):
            raise missing(f"{where}.role")
        if role not in READERS:
            known = ", ".join(READERS)
            raise bad_value(f"{where}.role", f"{where}.role is {role[:48]!r}; roles are {known}.")
        READERS[role](self, message, where)

    def add(self, where: str, kind: str, **fields: Any) -> None:
        self.items.append(Placed(where, {"type": kind, **fields}))

    def said(self, message: Message, where: str) -> None:
        content = _content(message.get("content"), "input_text")
        self.add(where, "message", role=message["role"], content=content)

    def assistant(self, message: Message, where: str) -> None:
        for key, advice in GIVEN_UP.items():
            if message.get(key):
                raise unsupported(f"{where}.{key}", f"{where}.{key} can't be used here: {advice}.")
        if thought := _reasoning(message, where):
            part = {"type": "reasoning_text", "text": thought}
            self.add(where, "reasoning", summary=[], content=[part])
        if content := _answer(message):
            self.add(where, "message", role=ASSISTANT, content=content)
        for place, call in enumerate(checks.array(message.get("tool_calls") or [], where)):
            self.call(call, f"{where}.tool_calls[{place}]")

    def call(self, raw: Any, where: str) -> None:
        call = checks.mapping(raw, where)
        kind = call.get("type") or "function"
        if kind not in ("function", "custom"):
            shown = str(kind)[:48]
            raise bad_value(
                f"{where}.type", f"{where}.type is {shown!r}; it is function or custom."
            )
        fields = call.get(kind)
        if not isinstance(fields, Mapping):
            raise missing(f"{where}.{kind}")
        call_id, name = _word(call, "id", where), _word(fields, "name", f"{where}.{kind}")
        if kind == "custom":
            self.custom.add(call_id)
            given = fields.get("input")
            self.add(where, "custom_tool_call", call_id=call_id, name=name, input=given)
        else:
            given = fields.get("arguments")
            self.add(where, "function_call", call_id=call_id, name=name, arguments=given)

    def result(self, message: Message, where: str) -> None:
        call_id = _word(message, "tool_call_id", where)
        kind = "custom_tool_call_output" if call_id in self.custom else "function_call_output"
        self.add(
            where, kind, call_id=call_id, output=_content(message.get("content"), "input_text")
        )

    def function(self, message: Message, where: str) -> None:
        raise unsupported(
            f"{where}.role", f'{where} has the role "function"; send role "tool" and tool_call_id.'
        )


READERS: Final[dict[str, Callable[[_History, Message, str], None]]] = {
    "system": _History.said,
    "developer": _History.said,
    "user": _History.said,
    ASSISTANT: _History.assistant,
    "tool": _History.result,
    "function": _History.function,
}

GIVEN_UP: Final = {
    "function_call": "use tool_calls",
    "audio": "no audio was made here; send its transcript as content",
}
"""Keys of an assistant's message whose meaning would be lost -> what to do instead."""


def _word(fields: Message, key: str, where: str) -> str:
    word = fields.get(key)
    if word is None or word == "":
        raise missing(f"{where}.{key}")
    return str(checks.text(word, f"{where}.{key}"))


def _reasoning(message: Message, where: str) -> str:
    """What the model thought, under whichever name the client keeps it."""
    given = {key: message[key] for key in REASONING_KEYS if message.get(key)}
    texts = dict.fromkeys(checks.text(text, f"{where}.{key}") for key, text in given.items())
    if len(texts) > 1:
        raise bad_value(where, f"{where} has different texts under {' and '.join(given)}.")
    return next(iter(texts), "")


def _answer(message: Message) -> Any:
    """The content, and the refusal that may stand in its place."""
    content = _content(message.get("content"), "output_text")
    refusal = message.get("refusal")
    if not refusal:
        return content
    before = [{"type": "output_text", "text": content}] if isinstance(content, str) else content
    shown = [part for part in before if part.get("text") != ""]
    return [*shown, {"type": "refusal", "refusal": refusal}]


def _content(content: Any, text_type: str) -> Any:
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return content  # text, or what is refused where items are read
    return [_part(part, text_type) for part in content]


def _part(part: Any, text_type: str) -> Any:
    kind = part.get("type") if isinstance(part, Mapping) else None
    reader = PARTS.get(kind) if isinstance(kind, str) else None
    return part if reader is None else reader(part, text_type)


def _text(part: Message, text_type: str) -> Part:
    return {"type": text_type, "text": part.get("text")}


def _image(part: Message, text_type: str) -> Part:
    image = part.get("image_url")
    fields = image if isinstance(image, Mapping) else {"url": image}
    detail = fields.get("detail") or "auto"
    return {"type": "input_image", "image_url": fields.get("url"), "detail": detail}


def _file(part: Message, text_type: str) -> Part:
    fields = part.get("file")
    given = fields if isinstance(fields, Mapping) else {}
    kept = ("file_data", "file_id", "filename")
    return {"type": "input_file", **{key: given[key] for key in kept if key in given}}


PARTS: Final[dict[str, Callable[[Message, str], Part]]] = {
    "text": _text,
    "image_url": _image,
    "file": _file,
}
"""Part type -> how the Responses API writes it; others have no other name there."""
