"""JSON text to values and back, within limits that no text and no host setting can move.

Rules: JSON and its numbers, nothing of schemas or of the wire. What is beyond
a limit is refused with ValueError before any work is spent on it. The limits
are below those of the interpreter, so that they decide, and not the caller's
stack or ``sys.set_int_max_str_digits``.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 128
"""Brackets that may be open at once in a text that is decoded."""

MAX_DIGITS: Final = 4300
"""Digits of the longest integer that is decoded (wire_format 7)."""

MAX_ENCODED_DEPTH: Final = 10_000
"""Containers within each other in a value that is encoded; one that holds itself has more."""

STARTS: Final = frozenset('-0123456789tfn"[{')
"""The first characters of JSON texts."""

# --- Decoding -----------------------------------------------------------------------------


def decode_json(text: str) -> Any:
    """The value of a JSON text without whitespace around it.

    Raises ValueError for anything else, for NaN and the infinities, and beyond
    the limits; RecursionError if the caller has all but used up the stack.
    """
    if text[:1] not in STARTS:  # most prose ends here, cheaply
        raise ValueError("not JSON")
    if _too_deep(text):
        raise ValueError("nested deeper than is decoded")
    return _DECODER.decode(text)


def integral(literal: str) -> int:
    """The integer that a float literal writes, exactly; ValueError if it writes none."""
    from decimal import Decimal  # rarely needed, and slow to import

    try:
        number = Decimal(literal)
    except ArithmeticError as error:  # an exponent of twenty digits
        raise ValueError("an exponent beyond the range of decimals") from error
    if number != number.to_integral_value():
        raise ValueError("not an integer")
    return int(number)


def _integer(literal: str) -> int:
    # 640 digits are the least that sys.set_int_max_str_digits can forbid to exceed.
    if len(literal) <= 640:
        return int(literal)
    if len(literal.removeprefix("-")) > MAX_DIGITS:
        raise ValueError("an integer of more digits than are decoded")
    from decimal import Decimal  # rarely needed, and slow to import

    return int(Decimal(literal))


def _real(literal: str) -> float:
    value = float(literal)
    written = literal.lower().partition("e")[0].strip("-0.")
    if math.isinf(value) or (value == 0 and written):
        raise ValueError("a number beyond the range of floats")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object that names a member twice, which would lose one")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    parse_int=_integer,
    parse_float=_real,
    parse_constant=_constant,
    object_pairs_hook=_object,
)

# A string (or what is left of one), an opening bracket, a closing bracket. Possessive:
# each character is looked at once, whatever the text.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|([\[{])|([\]}])', re.DOTALL)
_STEP: Final = {None: 0, 1: 1, 2: -1}


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _BRACKETS.finditer(text):
        depth += _STEP[token.lastindex]
        if depth > MAX_DEPTH:
            return True
    return False


# --- Encoding -----------------------------------------------------------------------------

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)

_Entries: TypeAlias = "Iterator[tuple[str, Any]]"
"""What is left of a container: the text before each value, and the value."""


def escape_json(text: str) -> str:
    """``text`` as the inside of a JSON string literal, non-ASCII kept.

    Characters are escaped one by one: the pieces of a string escape to the
    pieces of its literal, wherever it is cut.
    """
    return encode_basestring(text)[1:-1]


def to_json(value: Any) -> str:
    """The JSON text of ``value``: ``json.dumps`` with non-ASCII kept and default separators.

    Never raises for what was decoded here, whatever stack the caller has left.
    Raises TypeError for what has no JSON form, ValueError for what holds itself.
    """
    try:
        return _ENCODER.encode(value)
    except (ValueError, RecursionError):
        return _encode_anywhere(value)


def _encode_anywhere(value: Any) -> str:
    """:func:`to_json` of string keys, with the open containers in a list instead of on the stack.

    It also writes the integers that the host forbids to write.
    """
    written: list[str] = []
    levels: list[tuple[_Entries, str]] = [(iter([("", value)]), "")]
    while levels:
        entries, closer = levels[-1]
        for lead, item in entries:
            written.append(lead)
            if isinstance(item, dict | list | tuple):
                opener, closer = "{}" if isinstance(item, dict) else "[]"
                written.append(opener)
                levels.append((_entries(item), closer))
                break
            written.append(_scalar(item))
        else:
            written.append(closer)
            levels.pop()
        if len(levels) > MAX_ENCODED_DEPTH:
            raise ValueError(f"nested deeper than {MAX_ENCODED_DEPTH}; does it hold itself?")
    return "".join(written)


def _entries(container: dict[str, Any] | list[Any] | tuple[Any, ...]) -> _Entries:
    separator = ""
    if isinstance(container, dict):
        for key, item in container.items():
            yield f"{separator}{encode_basestring(key)}: ", item
            separator = ", "
        return
    for item in container:
        yield separator, item
        separator = ", "


def _scalar(value: Any) -> str:
    """A value that holds no other; Decimal knows no limit of digits."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int) and not isinstance(value, bool):
        from decimal import Decimal  # rarely needed, and slow to import

        return str(Decimal(value))
    return _ENCODER.encode(value)
