"""A stranger's words in our messages: printable, short, and only the first few of many.

Rules: whatever a checkpoint holds, a message stays readable and a terminal obeys none of it.
"""

from __future__ import annotations

import reprlib
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

FEW: Final = 4
"""How many names, keys or layers one message has."""

_LONGEST: Final = 60


class _Short(reprlib.Repr):
    """Cuts a text before it is quoted, so that no escape is cut in two."""

    def repr_str(self, text: str, _: int) -> str:
        return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...")


_SHORT: Final = _Short()
_SHORT.maxother = _LONGEST


def show(found: object) -> str:
    """``found`` as Python writes it, cut short."""
    try:
        return _SHORT.repr(found)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        return f"a {type(found).__name__} too long to show"


def named(found: object) -> str:
    """``found`` as it is, or as :func:`show` where it is long or odd."""
    text = str(found)
    return text if len(text) <= 2 * _LONGEST and text.isprintable() else show(text)


def some(found: Collection[object]) -> str:
    """The first few of ``found``, each as :func:`named`, and how many more there are."""
    more = len(found) - FEW
    return ", ".join(map(named, islice(found, FEW))) + (f" and {more} more" if more > 0 else "")
