"""Where something stands in a request of another API, for errors found after its translation.

Rules: an error names the field that the client sent. A translated item
remembers where it came from; the names of fields are told by a table. In the
message only the field that the error is about is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from .faults import ApiError

Words: TypeAlias = Sequence[tuple[str, str]]
"""``(pattern, replacement)`` of a field's path, tried in order; each one that fits is used."""

_ITEM: Final = re.compile(r"input\[(\d+)\]")
_PART: Final = re.compile(r"\.content\[(\d+)\]")


class Placed(NamedTuple):
    """An item of the Responses API, and the place of the client's request that it is made of."""

    where: str
    item: dict[str, Any]
    parts: Sequence[str] = ()
    """Of its parts, where they are not at ``where.content[N]``."""


def replaced(error: ApiError, items: Sequence[Placed], words: Words) -> ApiError:
    """``error`` about a translated request, in the words of the client's.

    ``items`` are its ``input``, and where that came from.
    """
    if error.param is None:
        return error
    param = _place(error.param, items)
    for pattern, replacement in words:
        param = re.sub(pattern, replacement, param)
    message = error.message
    if not error.param.isalpha():  # "input" and the like are also words of a sentence
        message = message.replace(error.param, param)
    return ApiError(message, status=error.status, type=error.type, code=error.code, param=param)


def _place(param: str, items: Sequence[Placed]) -> str:
    found = _ITEM.match(param)
    if found is None or int(found[1]) >= len(items):
        return param
    item, rest = items[int(found[1])], param[found.end() :]
    part = _PART.match(rest)
    if part is None or int(part[1]) >= len(item.parts):
        return item.where + rest
    return item.parts[int(part[1])] + rest[part.end() :]
