"""A schema's pattern, looked for in a text that a model wrote.

Rules: one dialect, the regex module's (it knows more of JSON Schema's syntax
than re), and bounds on time and memory: patterns are strangers'. The module
writes repeats out when it compiles, so that ``a{1000000000}`` takes all the
memory there is; what a pattern comes to is reckoned before it is compiled.
Imported where a schema has a pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache
from time import perf_counter
from typing import Any, Final

import regex

SECONDS: Final = 0.25
"""Time for one search, and again for each MiB of text."""

SLOW: Final = 0.01
"""Seconds of a search that counts."""

MAX_SIZE: Final = 20_000
"""Elements of a pattern whose repeats are written out; the module takes 260 bytes for each."""

REMEMBERED: Final = 64
"""Compiled patterns that are kept."""

UNREADABLE: Final = (regex.error, TypeError, OverflowError, RecursionError)
"""What is raised for what is no pattern of the dialect, or too large a one."""

_TOKEN: Final = re.compile(r"\\.|\[\^?(?:\\.|[^\\\[\]])+\]|\{(\d+)(?:,\d*)?\}|.", re.DOTALL)
"""An escape, a class, a repeat with its least number, or any other character."""

_QUOTED: Final = re.compile(r"\\.|\[\^?(?:\\.|[^\\\[\]])+\]", re.DOTALL)
_CALL: Final = re.compile(r"\(\?(?:R|[+-]?\d|&|P>)")
"""A group that is matched again where it stands: each level of that takes memory."""

_COUNT: Final = re.compile(r"\{\s*(\d+)")
_VERBOSE: Final = re.compile(r"\(\?(?:#|[\w-]*x)")
"""What makes brackets of a pattern mean something else than they seem to."""


def occurs(pattern: str, text: str, seconds: float = SECONDS) -> bool | None:
    """Whether ``pattern`` is found in ``text``; None if that takes too long. Raises UNREADABLE."""
    found = compiled(pattern)
    try:
        return found.search(text, timeout=seconds * (1 + len(text) / 2**20)) is not None
    except TimeoutError:
        return None


class Searches:
    """Searches that share their time: one that is slow ends soon, and many that are do too."""

    __slots__ = ("_left",)

    def __init__(self, seconds: float = 4 * SECONDS) -> None:
        self._left = seconds

    def occurs(self, pattern: str, text: str) -> bool | None:
        """See :func:`occurs`; None also if no time is left."""
        if self._left <= 0:
            return None
        began = perf_counter()
        found = occurs(pattern, text, min(SECONDS, self._left))
        # Those that are quick cost nothing, however many they are: the value's size bounds them.
        spent = perf_counter() - began
        self._left -= spent if spent > SLOW else 0
        return found


@lru_cache(maxsize=REMEMBERED)
def compiled(pattern: str) -> Any:
    """The expression, ready to be searched for. Raises one of UNREADABLE."""
    if "(?" in pattern and _CALL.search(_QUOTED.sub("", pattern)):
        raise OverflowError("it refers to itself as a whole or in part, which has no bound")
    if written_out(pattern) > MAX_SIZE:
        raise OverflowError(f"it is more than {MAX_SIZE} elements with its repeats written out")
    return regex.compile(pattern, cache_pattern=False)


def written_out(pattern: str) -> int:
    """The elements of ``pattern`` with its repeats written out, or some more; never fewer.

    Past the limit it stops counting.
    """
    if len(pattern) <= MAX_SIZE and "{" not in pattern:
        return len(pattern)
    size = None if _VERBOSE.search(pattern) else _nested(pattern)
    return _flat(pattern) if size is None else size


def _nested(pattern: str) -> int | None:
    """By its groups; None if it isn't clear where they begin and end."""
    sizes, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        found, count = token.group(), token.group(1)
        if found in ("[", "]") or (found == ")" and len(sizes) == 1):
            return None
        if found == "(":
            sizes.append(1)
            continue
        if count is None:
            last = sizes.pop() if found == ")" else 1
            sizes[-1] += last
        else:
            more = last * (max(1, _number(count)) - 1)
            sizes[-1], last = sizes[-1] + more, last + more
        if sizes[-1] > MAX_SIZE:
            return sizes[-1]
    return sum(sizes)


def _flat(pattern: str) -> int:
    """As if every repeat stood around all the others."""
    size = len(pattern)
    for count in _COUNT.findall(pattern):
        size *= max(1, _number(count))
        if size > MAX_SIZE:
            break
    return size


def _number(digits: str) -> int:
    return int(digits) if len(digits) < len(str(MAX_SIZE)) else MAX_SIZE + 1
