"""Long texts in few characters.

Rules: plain text in and out. Both ends are kept, because the beginning tells
what it is and the end of an error tells what was asked for.
"""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 200
"""Characters of a message. Values of 16 MiB are possible, and a message quotes its value."""

COUNTED: Final = " … ({} characters left out) … "
"""A gap that says how long it is."""


def shorten(text: str, longest: int = MAX_MESSAGE, *, gap: str = " … ") -> str:
    """``text`` within ``longest`` characters, ``gap`` in place of its middle."""
    if len(text) <= longest:
        return text
    kept = (longest - len(gap.format(len(text)))) // 2
    return f"{text[:kept]}{gap.format(len(text) - 2 * kept)}{text[-kept:]}"
