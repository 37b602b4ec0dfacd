"""Names, keys and argument values in their wire form.

Rules: strings in and out; nothing is escaped, because the format has no
escapes (wire_format 2). What would be read back as something else by every
reader is refused, so a name that breaks its header or tag is an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .. import wire
from ..errors import RenderError

_HALF: Final = re.compile("[\ud800-\udfff]")


def header_name(name: str, what: str) -> str:
    """``name`` if it can be a recipient. Raises RenderError, naming ``what``."""
    return _unbroken(name, what, wire.BREAKS_HEADER, "the message header")


def tag_name(name: str, what: str) -> str:
    """``name`` if it can stand in quotes in a tag; spaces may. Raises RenderError."""
    return _unbroken(name, what, wire.BREAKS_TAG, "its tag")


def _unbroken(name: str, what: str, forbidden: str, place: str) -> str:
    if not name:
        raise RenderError(f"{what} has an empty name; give it one")
    if bad := [char for char in name if char in forbidden]:
        raise RenderError(
            f"{what} has the name {name!r}: {bad[0]!r} would break {place}; rename it"
        )
    return name


def parameter_name(key: object, what: str) -> str:
    """``key`` if it can stand in a parameter tag; spaces may. Raises RenderError."""
    if not isinstance(key, str) or not key:
        raise RenderError(f"{what} has the argument name {key!r}; it must be a non-empty string")
    if bad := [char for char in key if char in wire.BREAKS_TAG]:
        raise RenderError(f"{what} has the argument name {key!r}: {bad[0]!r} would break its tag")
    return key


def encode_value(value: Any, what: str) -> str:
    """One argument's wire text (wire_format 2). Raises RenderError for what has no JSON form.

    Strings are raw (but JSON with half a character, which has no raw form), booleans
    and None are JSON words, containers JSON, everything else is its ``str``.
    """
    if isinstance(value, str):
        return dump(value, what) if _HALF.search(value) else value
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, Mapping | Iterable):
        return dump(value, what)
    if isinstance(value, float) and not math.isfinite(value):
        raise RenderError(f"{what} is {value}, which JSON can't express; use null or a string")
    return _str(value, what)


def dump(value: Any, what: str) -> str:
    """``value`` as the template's ``tojson`` writes it; raises RenderError if JSON can't.

    Half a character, which a model can write as an escape, stays one: it has no UTF-8 form.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RenderError(f"{what} can't be written as JSON: {error}") from error
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _str(value: object, what: str) -> str:
    try:
        return str(value)
    except ValueError as error:  # an int of more than 4300 digits
        raise RenderError(f"{what} can't be written: {error}") from error


def arguments_text(arguments: Mapping[str, Any], what: str) -> str:
    """The parameter tags of a call, a line each."""
    return "".join(
        f"{wire.parameter_open(parameter_name(key, what))}"
        f"{encode_value(value, f'argument {key!r} of {what}')}{wire.PARAMETER_CLOSE}\n"
        for key, value in arguments.items()
    )
