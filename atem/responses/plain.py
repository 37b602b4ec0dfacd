"""Is a request's JSON fit to be worked with? Its depth, its numbers, its text.

Rules: one walk without recursion, in time linear in the body. What can't be
repaired is refused. A lone surrogate, which has no UTF-8 form and comes from
clients that cut a string in the middle of a character, becomes U+FFFD: a
conversation must not be stuck for ever on one broken character of a tool's output.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from .faults import bad_value

MAX_DEPTH: Final = 64
"""Arrays and objects inside each other (responses.md 5)."""

MAX_BITS: Final = 1024
"""Of a whole number; as far as a float reaches."""

REPLACEMENT: Final = "\ufffd"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def cleaned(value: Any, param: str | None = None) -> tuple[Any, int]:
    """``value`` as plain dicts and lists of its own, and how many strings were repaired.

    Raises ApiError for what is nested deeper than 64, for a number that JSON
    can't express, and for what is no JSON at all.
    """
    root: list[Any] = [None]
    repaired = 0
    pending: list[tuple[Any, Any, Any, int]] = [(root, 0, value, 0)]
    while pending:
        target, key, node, depth = pending.pop()
        if isinstance(node, str):
            target[key], mended = _text(node)
            repaired += mended
        elif isinstance(node, dict | list | tuple):
            target[key], members, mended = _container(node, depth, param)
            repaired += mended
            pending += [(target[key], place, member, depth + 1) for place, member in members]
        else:
            target[key] = _scalar(node, param)
    return root[0], repaired


def _container(
    node: Any, depth: int, param: str | None
) -> tuple[dict[str, Any] | list[Any], list[tuple[Any, Any]], int]:
    """An empty copy in the node's order, what belongs into it, and how many keys were repaired."""
    if depth >= MAX_DEPTH:
        raise bad_value(param, f"The request is nested deeper than {MAX_DEPTH} levels.")
    if not isinstance(node, dict):
        return [None] * len(node), list(enumerate(node)), 0
    keys = [_key(key, param) for key in node]
    names = [key for key, _ in keys]
    members = list(zip(names, node.values(), strict=True))
    return dict.fromkeys(names), members, sum(mended for _, mended in keys)


def _key(key: object, param: str | None) -> tuple[str, int]:
    if not isinstance(key, str):
        raise bad_value(param, "The request is no JSON: an object's keys are strings.")
    return _text(key)


def _text(text: str) -> tuple[str, int]:
    if text.isascii() or not _SURROGATE.search(text):
        return text, 0
    return _SURROGATE.sub(REPLACEMENT, text), 1


def _scalar(node: object, param: str | None) -> object:
    if node is not None and not isinstance(node, bool | int | float):
        raise bad_value(param, f"The request is no JSON: it holds a {type(node).__name__}.")
    if isinstance(node, float) and not math.isfinite(node):
        raise bad_value(param, "The request has a number that JSON can't express (NaN, Infinity).")
    if isinstance(node, int) and node.bit_length() > MAX_BITS:
        raise bad_value(param, f"The request has a number of more than {MAX_BITS} bits.")
    return node
