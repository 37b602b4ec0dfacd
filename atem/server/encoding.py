"""JSON on the socket.

Rules: out is UTF-8 on one line. A lone surrogate, which Python strings may hold
and UTF-8 may not, goes out as its escape, and so does whatever a reader might
take for the end of a line. In is UTF-8 and strict JSON, neither
deep nor large.
"""

from __future__ import annotations

import asyncio
import json
import re
from math import isfinite
from typing import Any, Final, NoReturn

import orjson

from ..responses.faults import bad_value

BREAKS: Final = re.compile("\x85|\u2028|\u2029".encode())
"""Ends of lines to some readers of event streams, though not to the standard."""

DEPTH: Final = 64
"""Lists and objects within each other."""

ITEMS: Final = 20_000
"""Entries of a list."""

VALUES: Final = 500_000
"""Of a whole body: as many small ones take a hundred times the memory of their text."""

LONG: Final = 1 << 16
"""Bytes of a body that is read in a thread."""

_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.?+)*+(?:"|\Z)', re.DOTALL)
"""One string, or the rest of a body that isn't closed: each byte is looked at once."""


def encode(value: Any) -> bytes:
    """``value`` as JSON."""
    try:
        encoded = orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, or a number of more than 64 bits
        return json.dumps(value, separators=(",", ":")).encode()
    return encoded if encoded.isascii() else BREAKS.sub(_escaped, encoded)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


async def read(body: bytes) -> dict[str, Any]:
    """What :func:`decode` gives, and nobody else waits for it."""
    return decode(body) if len(body) < LONG else await asyncio.to_thread(decode, body)


def decode(body: bytes) -> dict[str, Any]:
    """The object in ``body``. Raises ApiError (400) for anything else."""
    if _values(body) > VALUES and _values(_STRING.sub(b"", body)) > VALUES:
        raise bad_value(None, f"The body has more than {VALUES} values.")
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise bad_value(None, f"The body is not UTF-8 (byte {error.start}).") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise bad_value(None, f"The body is not JSON: {error.msg} at {where}.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # a number with thousands of digits, NaN, 1e999
        raise bad_value(None, "The body is not JSON: it has a number that is none.") from None
    if not isinstance(value, dict):
        raise bad_value(None, "The body is a JSON object.")
    _check(value)
    return value


def _values(body: bytes) -> int:
    """How many values may be in ``body``: one behind each of these, or a few fewer."""
    return sum(map(body.count, (b",", b"[", b"{")))


def _check(value: Any) -> None:
    """Raise ApiError for what is deep or large; level by level, so that depth costs no stack."""
    level: list[Any] = [value]
    for _ in range(DEPTH):
        inner: list[Any] = []
        for each in level:
            if len(each) > ITEMS:
                raise bad_value(None, f"A list or object has more than {ITEMS} entries.")
            parts = each.values() if isinstance(each, dict) else each
            inner += [part for part in parts if isinstance(part, dict | list)]
        if not inner:
            return
        level = inner
    raise _too_deep()


def _too_deep() -> Exception:
    return bad_value(None, f"The body is nested more than {DEPTH} deep.")


def _no_number(_: str) -> NoReturn:
    raise ValueError


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError
    return number
