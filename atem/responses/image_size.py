"""The size of an image in a ``data:`` URL, from its first bytes.

Rules: nothing is decoded and nothing fetched. What has no size that can be read
is refused: it couldn't be counted, and no model could see it.
"""

from __future__ import annotations

import base64
from importlib import import_module
from io import BytesIO
from typing import NamedTuple

from ..errors import MissingExtra
from .faults import bad_value

MOST_PIXELS = 1 << 28
"""Of a side times a side: more is a mistake, or meant to harm."""


class Size(NamedTuple):
    """In pixels."""

    height: int
    width: int


def size_of(source: str) -> Size:
    """The size of an image. Raises ApiError for one that can't be read, and MissingExtra."""
    try:
        reader = import_module("imagesize")
    except ImportError as error:
        raise MissingExtra("server", "counting the tokens of an image (imagesize)") from error
    try:
        data = base64.b64decode(source.partition(",")[2])
        width, height = map(int, reader.get(BytesIO(data)))
    except Exception as error:  # a stranger's bytes can break in any way
        raise _unreadable() from error
    if not 0 < width * height <= MOST_PIXELS or width < 0:
        raise _unreadable()
    return Size(height, width)


def _unreadable() -> Exception:
    return bad_value("input", "An image of the input can't be read.", code="invalid_image")
