"""A terminator whose meaning hangs on what follows it (wire_format 5.1).

Rules: the object holds the run of terminators and whitespace, and the header
behind it once there is one, until either a header is certain (the terminator
was structural) or something else follows (it was text). The run is bounded by
``max_header``; what passes the bound is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from .header import Header, Phase

if TYPE_CHECKING:
    from .states import State


class Boundary:
    """An undecided terminator in the state ``interrupted``, at position ``start``."""

    __slots__ = ("_limit", "header", "interrupted", "run", "start", "terminator", "turn_over")

    def __init__(self, marker: str, start: int, interrupted: State, limit: int) -> None:
        self.interrupted = interrupted
        self.start = start
        self.terminator = marker
        self.run = marker
        self.turn_over = marker in wire.TURN_ENDS
        self.header: Header | None = None
        self._limit = limit

    @property
    def text(self) -> str:
        """Everything held."""
        return self.run if self.header is None else self.run + self.header.text

    @property
    def structural(self) -> bool:
        """Whether a header certainly follows."""
        return self.header is not None and self.header.confirmed

    def take(self, text: str, pos: int, end: int) -> int:
        """Read text as far as it leaves the boundary undecided; the position reached."""
        if self.header is not None:
            return self.header.take(text, pos, end, only_confirm=True)
        room = self._limit - len(self.run)
        rest = text[pos : min(end, pos + room)].lstrip(wire.WHITESPACE)
        stop = min(end, pos + room) - len(rest)
        self.run += text[pos:stop]
        return stop

    def marker(self, marker: str) -> bool:
        """Read a framing marker; False if it leaves the terminator literal."""
        if self.header is not None:
            return self.header.marker(marker)
        if marker == wire.START:
            start = self.start + len(self.run)
            # What is held in all stays in bounds; once structural, the header has its own.
            self.header = Header(Phase.FRAMED, start, self._limit - len(self.run), wire.START)
            return True
        if marker == wire.MESSAGE or len(self.run) + len(marker) > self._limit:
            return False
        self.run += marker
        self.turn_over = self.turn_over or marker in wire.TURN_ENDS
        return True

    def cut_by(self, tail: str) -> bool:
        """Whether the stream's end behind ``tail`` leaves a boundary (wire_format 3.1.8, 4)."""
        following = wire.START if self.header is None else wire.MESSAGE
        return following.startswith(tail)
