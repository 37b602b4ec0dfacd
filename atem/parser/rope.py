"""Text that grows at its end and is cut out of by position, in memory near its size.

Rules: appending is constant, a slice costs what it copies. Small pieces are
joined into blocks, because a list of four-character strings takes sixteen
times the memory of its text.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LOOSE: Final = 1024
"""Loose pieces that become a block."""


class Rope:
    """The text of a stream from ``start`` on. Positions are those of the stream.

    Each stretch remembers whether its provenance was known (``plain``:
    wire_format 1.1), so that it can be read again as it was. ``loose`` are the
    pieces that were appended last; who appends to it directly, which is what
    the hot path does, calls :meth:`pack` at ``MAX_LOOSE``.
    """

    __slots__ = ("_blocks", "_end", "_mode", "_plain", "_starts", "loose")

    def __init__(self, start: int) -> None:
        self._blocks: list[str] = []
        self._starts: list[int] = []
        self._plain: list[bool] = []
        self.loose: list[str] = []
        self._mode = False
        self._end = start  # of the blocks

    def append(self, text: str, plain: bool = False) -> None:
        """Add ``text`` at the end."""
        if plain is not self._mode:
            self.switch(plain)
        self.loose.append(text)
        if len(self.loose) >= MAX_LOOSE:
            self.pack()

    def switch(self, plain: bool) -> None:
        """Say what is known of the text that is added from here on."""
        self.pack()
        self._mode = plain

    def adopt(self, text: str, at: int) -> None:
        """Add the whole of ``text``, which begins at position ``at``, without copying it.

        It may begin before this rope does, but must reach beyond its end.
        """
        self.pack()
        self._blocks.append(text)
        self._starts.append(at)
        self._plain.append(self._mode)
        self._end = at + len(text)

    def slice(self, start: int, end: int) -> str:
        """The text from position ``start`` to ``end``."""
        return "".join(text for text, _plain in self.stretches(start, end))

    def stretches(self, start: int, end: int) -> Iterator[tuple[str, bool]]:
        """``(text, plain)`` of each stretch between two positions."""
        self.pack()
        for number in range(max(bisect_right(self._starts, start) - 1, 0), len(self._blocks)):
            at = self._starts[number]
            if at >= end:
                return
            low = max(start - at, 0)
            text = self._blocks[number][low : end - at]
            if text:
                yield text, self._plain[number]

    def pack(self) -> None:
        """Make a block of the loose pieces."""
        if self.loose:
            block = "".join(self.loose)
            self._blocks.append(block)
            self._starts.append(self._end)
            self._plain.append(self._mode)
            self._end += len(block)
            self.loose.clear()
