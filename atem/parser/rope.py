"""Text that grows at its end and is cut out of by position, in memory near its size.

Rules: appending is constant, a slice costs what it copies. Small pieces are
joined into blocks, because a list of four-character strings takes sixteen
times the memory of its text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

_BLOCK: Final = 16_384
"""Characters after which the loose pieces become a block."""


class Rope:
    """The text of a stream from ``start`` on. Positions are those of the stream.

    Each stretch remembers whether its provenance was known (``plain``:
    wire_format 1.1), so that it can be read again as it was.
    """

    __slots__ = ("_blocks", "_loose", "_loose_size", "_plain", "_starts", "end")

    def __init__(self, start: int) -> None:
        self._blocks: list[str] = []
        self._starts: list[int] = []
        self._plain: list[bool] = []
        self._loose: list[str] = []
        self._loose_size = 0
        self.end = start

    def append(self, text: str, *, plain: bool = False) -> None:
        """Add ``text`` at the end."""
        if self._loose and self._plain[-1] is not plain:
            self._pack()
        if not self._loose:
            self._starts.append(self.end)
            self._plain.append(plain)
        self._loose.append(text)
        self._loose_size += len(text)
        self.end += len(text)
        if self._loose_size >= _BLOCK:
            self._pack()

    def slice(self, start: int, end: int) -> str:
        """The text from position ``start`` to ``end``."""
        return "".join(text for text, _plain, _at in self.stretches(start, end))

    def stretches(self, start: int, end: int) -> Iterator[tuple[str, bool, int]]:
        """``(text, plain, position)`` of each stretch between two positions."""
        if self._loose:
            self._pack()
        for number in range(max(bisect_right(self._starts, start) - 1, 0), len(self._blocks)):
            at = self._starts[number]
            if at >= end:
                return
            low = max(start - at, 0)
            text = self._blocks[number][low : end - at]
            if text:
                yield text, self._plain[number], at + low

    def _pack(self) -> None:
        self._blocks.append("".join(self._loose))
        self._loose.clear()
        self._loose_size = 0
