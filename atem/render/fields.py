"""What chat messages and Responses items have in common: dicts, content parts, arguments.

Rules: shapes only, no knowledge of roles or of the wire. Nothing is dropped: a
part of an unknown type is an error that says where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..errors import RenderError
from ..messages import ImagePart, Part, TextPart, ToolCall, VideoPart
from ..wire import dotted
from .values import dump

Fields: TypeAlias = Mapping[str, Any]

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "thinking")
"""Where chat messages have their reasoning."""

TEXT_PARTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
"""Part type -> the key of its text."""

MEDIA_PARTS: Final[dict[str, Callable[[Any], Part]]] = {
    "image": ImagePart,
    "image_url": ImagePart,
    "input_image": ImagePart,
    "video": VideoPart,
    "video_url": VideoPart,
    "input_video": VideoPart,
}


def as_fields(item: object, where: str, expected: str = "a dict or a Message") -> Fields:
    """A dict, or a pydantic object's. Raises RenderError for anything else."""
    if isinstance(item, Mapping):
        return item
    dumped = getattr(item, "model_dump", None)
    if callable(dumped) and isinstance(fields := dumped(exclude_none=True), Mapping):
        return fields
    raise RenderError(f"{where} is a {type(item).__name__}; expected {expected}")


def read_content(content: Any, where: str) -> str | tuple[Part, ...]:
    """A message's content: a string, None (empty), or a sequence of parts. Raises RenderError."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping | bytes) or not isinstance(content, Iterable):
        raise RenderError(f"{where} is a {type(content).__name__}; expected a string or parts")
    return tuple(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def is_empty(content: str | tuple[Part, ...]) -> bool:
    """Whether nothing would be written for it."""
    if isinstance(content, str):
        return not content
    return all(isinstance(part, TextPart) and not part.text for part in content)


def _part(part: Any, where: str) -> Part:
    if isinstance(part, TextPart | ImagePart | VideoPart):
        return part
    if isinstance(part, str):
        return TextPart(part)
    fields = as_fields(part, where, "a string, a dict, TextPart, ImagePart or VideoPart")
    kind = fields.get("type")
    known = kind if isinstance(kind, str) else ""  # a list can't even be looked up
    if known in TEXT_PARTS:
        return TextPart(text_at(fields, TEXT_PARTS[known], where))
    if known in MEDIA_PARTS:
        return MEDIA_PARTS[known](_source(fields))
    raise RenderError(
        f"{where} has type {kind!r}, which the model can't be shown; "
        f"types are {', '.join((*TEXT_PARTS, *MEDIA_PARTS))}"
    )


def text_at(fields: Fields, key: str, where: str) -> str:
    """The string under ``key``. Raises RenderError if there is none."""
    text = fields.get(key)
    if not isinstance(text, str):
        raise RenderError(f"{where}.{key} is {type(text).__name__}; expected a string")
    return text


def _source(fields: Fields) -> Any:
    """Everything a part says about its picture: the only value, or all of them by name."""
    said = {key: value for key, value in fields.items() if key != "type" and value is not None}
    return next(iter(said.values())) if len(said) == 1 else said or None


def make_call(
    name: str, arguments: Any, *, where: str, call_id: str, namespace: str | None = None, index: int
) -> ToolCall:
    """A call of the past from a dict's fields. Raises RenderError for undecodable arguments."""
    mapping = read_arguments(arguments, where)
    wire_name = dotted(namespace, name)
    return ToolCall(
        index=index,
        id=call_id,
        name=name,
        namespace=namespace,
        raw_name=wire_name,
        recipient=wire_name,
        arguments=mapping,
        arguments_json=dump(mapping, f"{where}.arguments"),
    )


def read_arguments(arguments: Any, where: str) -> dict[str, Any]:
    """Arguments as a dict, from a mapping or from JSON text ("" and None are no arguments).

    Raises RenderError for text that is not the JSON of an object.
    """
    if arguments is None or arguments == "":
        return {}
    decoded = _decoded(arguments, where) if isinstance(arguments, str) else arguments
    if isinstance(decoded, Mapping):
        return dict(decoded)
    raise RenderError(
        f"{where}.arguments is a {type(decoded).__name__}; expected an object, or its JSON text"
    )


def _decoded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RenderError(
            f"{where}.arguments is no valid JSON ({error}); leave such a call out, "
            "or tell the model about it in a user message"
        ) from error
