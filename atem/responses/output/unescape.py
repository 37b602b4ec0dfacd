"""The text in a JSON string that is still being written.

Rules: knows the one shape that the parser writes for a custom tool,
``{"input": "…"}``, and gives each character as soon as all of it is there.
"""

from __future__ import annotations

import json
from typing import Final

from ...tools.definition import CUSTOM_INPUT

OPENING: Final = f'{{"{CUSTOM_INPUT}": "'
ESCAPE: Final = 6
"""The longest escape: a backslash, ``u`` and four digits."""


class Unescaper:
    """Takes pieces of the arguments' JSON, gives pieces of the input.

    Of arguments in another shape it gives nothing.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False

    def feed(self, text: str) -> str:
        """The characters of the input that ``text`` completes."""
        self._held += text
        if not self._inside:
            if len(self._held) < len(OPENING):
                return ""
            self._inside = True
            self._over = not self._held.startswith(OPENING)
            self._held = self._held.removeprefix(OPENING)
        return "" if self._over else self._read()

    def _read(self) -> str:
        done = place = 0
        while (place := _next_special(self._held, done)) < len(self._held):
            if self._held[place] == '"':
                self._over = True
                break
            width = _width(self._held, place)
            if width is None:
                break
            done = place + width
        text, self._held = self._held[:place], self._held[place:]
        return str(json.loads(f'"{text}"', strict=False))


def _next_special(text: str, start: int) -> int:
    """Where the next quote or backslash is, or the end."""
    found = [place for place in (text.find('"', start), text.find("\\", start)) if place >= 0]
    return min(found, default=len(text))


def _width(text: str, place: int) -> int | None:
    """The length of the escape at ``place``, both halves of a pair; None if it isn't all there."""
    if len(text) < place + 2:
        return None
    width = ESCAPE if text[place + 1] == "u" else 2
    if len(text) < place + width:
        return None
    if width == ESCAPE and text[place + 2 : place + 4].lower() in ("d8", "d9", "da", "db"):
        return 2 * ESCAPE if len(text) >= place + 2 * ESCAPE else None
    return width
