"""Stop strings: where the text ends, however the tokens cut it.

Rules: only whole pieces are held, and only as long as a stop string may still
begin in them. The string that is complete first wins, the longest of several
that are complete at once, so that no cut of the text changes the end. Ordinary
text is searched from special token to special token: a match neither crosses
one nor cuts one, but a stop string that is a special token's whole text ends
the text there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..wire import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class StopStrings:
    """Passes pieces on until one of ``stops`` is found; ``found`` is that one, or None."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._specials = frozenset(stops)
        self._searches = [_Search(stop) for stop in stops]
        self._held: deque[Piece] = deque()
        self._size = 0
        self.found: str | None = None

    def take(self, pieces: Iterable[Piece]) -> list[Piece]:
        """What may be shown after ``pieces``; nothing behind a stop string ever is."""
        shown: list[Piece] = []
        for piece in pieces:
            if not self.found:
                shown += self._special(piece) if piece.special else self._text(piece)
        return shown

    def flush(self) -> list[Piece]:
        """What is still held, when the text ends in another way."""
        return self._release(0)

    def _special(self, piece: Piece) -> list[Piece]:
        for search in self._searches:
            search.matched = 0
        self.found = piece.text if piece.text in self._specials else None
        return self._release(0) + ([] if self.found else [piece])

    def _text(self, piece: Piece) -> list[Piece]:
        self._held.append(piece)
        self._size += len(piece.text)
        for place, char in enumerate(piece.text, 1):
            matches = [search.stop for search in self._searches if search.take(char)]
            if matches:
                self.found = max(matches, key=len)
                return self._cut(len(piece.text) - place + len(self.found))
        return self._release(max((search.matched for search in self._searches), default=0))

    def _cut(self, size: int) -> list[Piece]:
        """What stands before the last ``size`` characters."""
        shown = self._release(size)
        if self._size > size:
            shown.append(Piece(self._held[0].text[: self._size - size]))
        return shown

    def _release(self, keep: int) -> list[Piece]:
        """The pieces that end before the last ``keep`` characters."""
        shown = []
        while self._held and self._size - len(self._held[0].text) >= keep:
            shown.append(self._held.popleft())
            self._size -= len(shown[-1].text)
        return shown


class _Search:
    """Knuth, Morris and Pratt: ``matched`` characters of ``stop`` end the text so far."""

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.matched = 0
        self._shorter = [0]
        for char in stop[1:]:
            self._shorter.append(self._after(self._shorter[-1], char))

    def take(self, char: str) -> bool:
        """Whether ``char`` completes the string."""
        self.matched = self._after(self.matched, char)
        return self.matched == len(self.stop)

    def _after(self, matched: int, char: str) -> int:
        while matched and self.stop[matched] != char:
            matched = self._shorter[matched - 1]
        return matched + (self.stop[matched] == char)
