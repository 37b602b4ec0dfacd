"""Headers, and what stands between and behind messages (wire_format 3.1).

Rules: a handler takes what it is sure of and moves the machine by the table in
:mod:`states`. A header is held by its own object and released from there,
never scanned again. Positions called ``end``, ``body`` or ``position`` are
those of the stream, ``pos`` and ``start`` those of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from .boundary import Boundary
from .handover import read_note
from .header import Header, Phase
from .scanner import Scanner
from .states import Signal, State
from .tool_body import ToolBody

if TYPE_CHECKING:
    from .context import Context


class Framing(Scanner):
    """The handlers of the states outside bodies. ``discarding``: text after the turn was told."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        first = Phase.UNFRAMED if self.options.framed else Phase.IMPLICIT
        self._header = Header(first, 0, self.options.max_header)
        self._boundary: Boundary | None = None
        self.discarding = False

    # -- opening a message ----------------------------------------------------

    def _signal_of(self, recipient: str | None) -> Signal:
        """Which kind of channel a recipient names (wire_format 3.2)."""
        if recipient == wire.SELF or (recipient is None and self.options.profile == "spark"):
            return Signal.SELF_HEADER
        if recipient is None or recipient == wire.USER:
            return Signal.ANSWER_HEADER
        if recipient == wire.COMMENTARY and self.context.resolve(recipient) is None:
            return Signal.ANSWER_HEADER
        return Signal.TOOL_HEADER

    def _open(
        self, recipient: str | None, text: str, body: int, *, recovered: str | None = None
    ) -> None:
        """Open the message whose header is read and whose body begins at ``body``.

        ``text`` is what is being scanned. ``recovered`` is set if the header was
        found in reasoning: to the whitespace between it and its block.
        """
        signal = self._signal_of(recipient)
        self.message.open(recipient, body)
        if signal is Signal.TOOL_HEADER:
            note = read_note(self._header.text) if self.options.framed else None
            self._tool = ToolBody(
                self.context, body, recipient, recovered=recovered is not None, note=note
            )
            before = (recovered or "")[: max(self._base - body, 0)]
            self._tool.begin(text, self._base, plain=self._plain, before=before)
        self._go(signal)

    def _open_by_header(self, text: str, pos: int) -> int:
        self._open(self._header.recipient, text, self._base + pos)
        return pos

    # -- first header, and text without one -----------------------------------

    def opening_text(self, text: str, pos: int, end: int) -> int:
        """Text while a first header may be read."""
        pos = self._header.take(text, pos, end)
        if self._header.phase is Phase.FAILED:
            self._no_first_header(self._base + pos)
        return pos

    def opening_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker while a first header may be read."""
        if not self._header.marker(marker):
            self._no_first_header(self._base + start)
            return start
        return self._open_by_header(text, end) if self._header.phase is Phase.DONE else end

    def _no_first_header(self, end: int) -> None:
        """What looked like a first header is an answer; it reaches to position ``end``."""
        self._go(Signal.NO_HEADER)
        if self._header.text:
            # Whitespace behind a boundary is framing; it leads to this message.
            self.message.open(None, self._header.start)
            self.message.say(self._header.text, end)

    # -- between messages -----------------------------------------------------

    def between_text(self, text: str, pos: int, end: int) -> int:
        """Text between two messages."""
        pos = end - len(text[pos:end].lstrip(wire.WHITESPACE))
        if pos < end:
            self._implicit_header(pos)
        return pos

    def between_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker between two messages."""
        if marker == wire.START:
            self._framed_header(self._base + start)
            self._go(Signal.START)
        elif marker == wire.MESSAGE:
            self._implicit_header(start)
            return start
        elif marker in wire.TURN_ENDS:
            self._go(Signal.TURN_OVER)
        return end

    def _implicit_header(self, pos: int) -> None:
        self._header = Header(Phase.IMPLICIT, self._base + pos, self.options.max_header)
        self._go(Signal.TEXT)

    def _framed_header(self, start: int) -> None:
        self._header = Header(Phase.FRAMED, start, self.options.max_header, wire.START)

    # -- header after a boundary (wire_format 3.1.6, 3.1.8, 3.1.9) -------------

    def header_text(self, text: str, pos: int, end: int) -> int:
        """Text in a header behind a boundary."""
        pos = self._header.take(text, pos, end)
        if self._header.phase is Phase.OTHER_ROLE:
            self._go(Signal.ROLE_HEADER)
            self._text_after_turn(self._header.start)
        elif self._header.phase is Phase.FAILED:
            self._bad_header(self._base + pos)
        return pos

    def header_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in a header behind a boundary."""
        if self._header.marker(marker):
            return self._open_by_header(text, end)
        held = len(self._header.text) + len(marker)
        if marker in wire.TERMINATORS and held <= self.options.max_header:
            self._begin_boundary(marker, start)
            return end
        self._bad_header(self._base + start)
        return start

    def _bad_header(self, end: int) -> None:
        """The header up to position ``end`` is none: a message without recipient begins with it."""
        self._go(Signal.NO_HEADER)
        self._tell_bad_header()
        self.message.say(self._header.text, end)

    def _tell_bad_header(self) -> None:
        text = f"{self._header.text!r} is not a header; it is shown as text"
        self._problem("bad_header", text, self._header.start)

    def _drop_header(self, end: int) -> None:
        self._problem("bad_header", f"the header {self._header.text!r} has no body", end)

    def _begin_boundary(self, marker: str, start: int) -> None:
        room = self.options.max_header
        if self.state is State.HEADER:
            room -= len(self._header.text)
        self._boundary = Boundary(marker, self._base + start, self.state, room)
        self._go(Signal.TERMINATOR)

    # -- after the turn ---------------------------------------------------------

    def over_text(self, text: str, pos: int, end: int) -> int:
        """Text behind the end of the turn."""
        blanks = end - pos - len(text[pos:end].lstrip(wire.WHITESPACE))
        if blanks < end - pos:
            self._text_after_turn(self._base + pos + blanks)
        return end

    def over_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker behind the end of the turn."""
        if marker not in wire.TERMINATORS:
            self._text_after_turn(self._base + start)
        return end

    def _text_after_turn(self, position: int) -> None:
        if not self.discarding:
            self.discarding = True
            self._problem(
                "text_after_turn", "text after the end of the turn is discarded", position
            )
