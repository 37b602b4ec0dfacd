"""Text on a screen: what a terminal would obey is shown instead.

Rules: rows in, bytes out. Every text that is not ours goes through
:func:`visible`. Colour is rich's work, and rich is imported only for it; its
markup is never parsed.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from . import output

if TYPE_CHECKING:
    from collections.abc import Iterable

GUTTER: Final = 17
"""Columns before a row's text: no row of a stranger's text can pass for one of ours."""

_KEPT: Final = "\t\n\u200c\u200d"
"""Layout, and the joiners that scripts and emoji need."""
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: controls, formats (text direction among them), surrogates, separators."""
_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F


class Row(NamedTuple):
    """One line of the screen: a label, a text, and the rich style of both."""

    label: str
    text: str
    style: str


class _Pictures(dict[int, str | int]):
    """Code point -> what is shown for it, worked out when first met."""

    def __missing__(self, code: int) -> str | int:
        shown = self[code] = _picture(code)
        return shown


def _picture(code: int) -> str | int:
    character = chr(code)
    if character in _KEPT or unicodedata.category(character) not in _UNSEEN:
        return code
    if code == _DELETE:
        return "\N{SYMBOL FOR DELETE}"
    return chr(_PICTURES + code) if code < ord(" ") else f"<U+{code:04X}>"


_pictures: Final = _Pictures()


def visible(text: str) -> str:
    """``text`` with a picture, or a code point, in place of what a terminal would obey."""
    return text.translate(_pictures)


def one_line(text: str) -> str:
    """:func:`visible`, line breaks too."""
    return visible(text).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def wants_colour(*, terminal: bool | None = None) -> bool:
    """NO_COLOR forbids it, FORCE_COLOR demands it, else a terminal that can show it decides.

    ``terminal`` says whether there is one; by default standard output is asked.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    seen = output.is_terminal() if terminal is None else terminal
    return seen and os.environ.get("TERM") != "dumb"


def show(rows: Iterable[Row]) -> None:
    """Write the rows. Raises MissingExtra if colour is wanted and rich is missing."""
    output.write((_coloured if wants_colour() else _plain)(rows).encode())


def _plain(rows: Iterable[Row]) -> str:
    return "".join(f"{row.label:<{GUTTER}}{visible(row.text)}\n" for row in rows)


def _coloured(rows: Iterable[Row]) -> str:
    try:
        from rich.console import Console  # only colour pays for it
    except ModuleNotFoundError as error:
        from ..errors import MissingExtra

        raise MissingExtra("agent", "colour") from error
    from rich.segment import Segment, Segments
    from rich.style import Style

    segments = []
    for row in rows:
        segments.append(Segment(f"{row.label:<{GUTTER}}", Style.parse("dim")))
        segments.append(Segment(visible(row.text), Style.parse(row.style)))
        segments.append(Segment.line())
    console = Console(force_terminal=True, legacy_windows=False)
    with console.capture() as captured:
        console.print(Segments(segments), soft_wrap=True, end="")
    return captured.get()
