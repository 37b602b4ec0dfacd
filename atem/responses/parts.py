"""The content of messages and outputs: text, images, files.

Rules: parts of the "wrong" direction are fine, because clients send back what
they got (responses.md 1.4). Nothing is ever fetched: an image or a file comes
in the request, as a ``data:`` URL. What the model can't be shown is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..messages import Content, ImagePart, Part, TextPart
from ..render.fields import TEXT_PARTS
from .faults import bad_value, missing, unsupported

_DATA: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,")
"""The beginning of a data URL; group 1 is its media type."""

TEXT_TYPES: Final = ("application/json", "application/xml", "application/x-yaml")
"""Media types of text beside ``text/*``."""

FILE: Final = '<file name="{}">\n{}\n</file>'


def read_content(content: Any, where: str) -> Content:
    """A message's content. Raises ApiError for a part that the model can't be shown."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        raise bad_value(where, f"{where} is a {type(content).__name__}; it is text or an array.")
    return tuple(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def read_output(output: Any, where: str) -> Content:
    """A tool's output: text, parts, or any JSON, which is shown as that."""
    if output is None or isinstance(output, str):
        return output or ""
    if isinstance(output, list | tuple) and all(map(_is_part, output)):
        return read_content(output, where)
    return json.dumps(output, ensure_ascii=False)


def text_of(content: Content, between: str = "") -> str:
    """The text of a content, without its images."""
    if isinstance(content, str):
        return content
    texts = (part.text if isinstance(part, TextPart) else part for part in content)
    return between.join(text for text in texts if isinstance(text, str))


def has_images(content: Content) -> bool:
    """Whether a content shows an image."""
    return not isinstance(content, str) and any(isinstance(part, ImagePart) for part in content)


def _is_part(part: object) -> bool:
    return isinstance(part, Mapping) and isinstance(kind := part.get("type"), str) and kind in PARTS


def _part(part: Any, where: str) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    if not isinstance(part, Mapping):
        raise bad_value(where, f"{where} is a {type(part).__name__}; a part is an object.")
    kind = part.get("type")
    if kind is None and isinstance(part.get("text"), str):
        kind = "text"
    if not isinstance(kind, str):
        raise missing(f"{where}.type")
    if kind not in PARTS:
        raise unsupported(where, f"{where} has type {kind[:64]!r}, which the model can't be shown.")
    return PARTS[kind](part, where)


def _text(part: Mapping[str, Any], where: str) -> Part:
    key = TEXT_PARTS[part.get("type") or "text"]
    text = part.get(key)
    if text is not None and not isinstance(text, str):
        raise bad_value(f"{where}.{key}", f"{where}.{key} is a {type(text).__name__}, not text.")
    return TextPart(text or "")


def _image(part: Mapping[str, Any], where: str) -> Part:
    source = part.get("image_url")
    if isinstance(source, Mapping):  # as in Chat Completions
        source = source.get("url")
    if not isinstance(source, str):
        raise _no_data(where, "image_url")
    kind, _ = _data(source, f"{where}.image_url")
    if not kind.startswith("image/"):
        raise bad_value(f"{where}.image_url", f"{where}.image_url is {kind[:64]!r} and no image.")
    return ImagePart(source)


def _file(part: Mapping[str, Any], where: str) -> Part:
    nested = part.get("file")  # as in Chat Completions
    fields = nested if isinstance(nested, Mapping) else part
    source, name = fields.get("file_data"), fields.get("filename")
    if not isinstance(source, str):
        raise _no_data(where, "file_data")
    kind, data = _data(source, f"{where}.file_data")
    if not kind.startswith("text/") and kind not in TEXT_TYPES:
        raise unsupported(where, f"{where} is a file of type {kind[:64]!r}; send its text.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_value(f"{where}.file_data", f"{where}.file_data is no UTF-8 text.") from error
    return TextPart(FILE.format(name if isinstance(name, str) else "", text))


PARTS: Final[dict[str, Callable[[Mapping[str, Any], str], Part]]] = {
    **dict.fromkeys(TEXT_PARTS, _text),
    "input_image": _image,
    "image_url": _image,
    "input_file": _file,
    "file": _file,
}
"""Part type -> its reader."""


def _data(source: str, param: str) -> tuple[str, bytes]:
    """The media type and the bytes of a data URL."""
    begin = _DATA.match(source)
    if begin is None:
        shown = source[:32]
        raise unsupported(
            param,
            f"{param} begins with {shown!r}; only data: URLs with base64 are read, and nothing is "
            "fetched.",
        )
    try:
        return begin[1].lower(), base64.b64decode(source[begin.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_value(param, f"{param} is no base64: {error}.") from error


def _no_data(where: str, key: str) -> Exception:
    return unsupported(
        where,
        f"{where} has no {key}; files stored elsewhere can't be used here: send a data: URL there.",
    )
