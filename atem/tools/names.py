"""Names: which declared tool a name written by the model means, and which names can be written.

Rules: pure functions and tables over strings. The order of resolution is
wire_format 6; safety comes before helpfulness, so a name is resolved only if
no other declared tool could have been meant.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .. import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NameRule: TypeAlias = Literal["safe", "exact", "unique-leaf"]

MAX_NAME: Final = wire.MAX_HEADER - len(f"{wire.START}{wire.ASSISTANT} {wire.TO}{wire.MESSAGE}")
MAX_KEY: Final = wire.MAX_TAG - len(wire.parameter_open(""))

LIKELY: Final = 24
"""Names that are compared letter by letter for suggestions."""

COMPARED: Final = 128
"""Characters of a name that are compared for suggestions: difflib's work is quadratic in them."""


def leaf(name: str) -> str:
    """The text after the last dot."""
    return name.rpartition(".")[2]


def head(name: str) -> str:
    """The text before the first dot: the template's notion of a namespace (wire_format 2)."""
    return name.partition(".")[0]


def aliases(names: Iterable[str]) -> dict[str, str]:
    """Every spelling of rules 2 and 3 (wire_format 6) -> the declared name it means.

    To be asked after the declared names themselves, because exact wins. A
    spelling of rule 3 that two tools claim is left out.
    """
    declared = list(names)
    repeated: dict[str, str | None] = {}
    for name in declared:
        for spelling in _repeated_namespace(name):
            repeated[spelling] = name if repeated.get(spelling, name) == name else None
    found = {spelling: name for spelling, name in repeated.items() if name is not None}
    found.update((f"{name}.{name}", name) for name in declared)
    return found


def _repeated_namespace(name: str) -> Iterator[str]:
    """``ns.ns.fn`` for ``ns.fn``; with several dots the namespace may end at the first or last."""
    for namespace in {head(name), name.rpartition(".")[0]}:
        if namespace and namespace != name:
            yield f"{namespace}.{name}"


def strip_foreign_prefix(raw_name: str, heads: frozenset[str]) -> str | None:
    """The undotted name behind one prefix that is foreign to every declared tool (rule 4).

    ``heads`` are the first segments of the declared names. None if the prefix
    is one of them: ``mail.list`` is not ``list`` while ``mail.send`` exists,
    and ``read.path`` may be a parameter glued to ``read`` (wire_format 5.7).
    None also behind two prefixes: ``functions.mail.list`` means mail's.
    """
    prefix, _, last = raw_name.partition(".")
    return last if prefix and last and "." not in last and prefix not in heads else None


def unique_leaves(names: Iterable[str]) -> dict[str, str]:
    """Last segment -> the only declared name that ends with it."""
    found: dict[str, str | None] = {}
    for name in names:
        last = leaf(name)
        found[last] = None if last in found else name
    return {last: name for last, name in found.items() if name is not None}


def nearest(raw_name: str, names: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Up to ``limit`` of ``names``: same last segment first, then the prefix, then alike."""
    from difflib import get_close_matches  # rarely needed: only for a call that failed

    wanted = raw_name[:COMPARED].casefold()
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(name[:COMPARED].casefold(), name)
    same_leaf = [key for key in spelled if leaf(key) == leaf(wanted)]
    prefix = [head(wanted)] if head(wanted) in spelled else []
    alike = get_close_matches(wanted, _likely(wanted, spelled), n=limit)
    best = dict.fromkeys([*same_leaf, *prefix, *alike])
    return tuple(spelled[key] for key in best)[:limit]


def _likely(wanted: str, keys: Iterable[str]) -> list[str]:
    """The few ``keys`` that share most pairs of letters: difflib on all of 1,000 takes 25 ms."""
    pairs = _pairs(wanted)
    return nlargest(LIKELY, keys, key=lambda key: len(pairs & _known_pairs(key)) / (len(key) + 1))


def _pairs(text: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(text)))


_known_pairs = lru_cache(maxsize=4096)(_pairs)  # of declared names only: they come back


def why_uncallable(name: str) -> str | None:
    """Why ``name`` can't be a recipient and stand in an invoke, or None (wire_format 3)."""
    if name in (wire.SELF, wire.USER):
        return f"{name!r} is a channel of the format, so a message to it never reaches a tool"
    return why_unwritable_name(name)


def why_unwritable_name(name: str) -> str | None:
    """Why ``name`` can't stand in a header and in a tag, or None (wire_format 3)."""
    return _why_unwritable(name, wire.BREAKS_TAG + wire.BREAKS_HEADER, MAX_NAME)


def why_unwritable_key(key: str) -> str | None:
    """Why the model can't write ``key`` as a parameter's name, or None (wire_format 3)."""
    return _why_unwritable(key, wire.BREAKS_TAG, MAX_KEY)


def _why_unwritable(text: str, forbidden: str, longest: int) -> str | None:
    if not text:
        return "it is empty"
    if bad := next((char for char in text if char in forbidden), None):
        return f"it contains {bad!r}, which the format can't quote"
    if len(text) > longest:
        return f"it has {len(text)} characters, and the format carries {longest}"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "it contains a lone surrogate, which has no UTF-8 form"
    return None
