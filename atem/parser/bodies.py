"""Answers, reasoning and boundaries (wire_format 5.1 to 5.3), and the tables of all handlers.

Rules: as in :mod:`framing`. What is held because it may be framing is held by
an object of its own (a header, a boundary) and released from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from .. import wire
from .framing import Framing
from .header import Header, Phase
from .states import Signal, State
from .tool_body import ToolBody
from .tool_states import ToolStates
from .verdict import Ending

if TYPE_CHECKING:
    from .boundary import Boundary
    from .context import Context

_LITERAL: Final = {
    State.HEADER: Signal.LITERAL_IN_ANSWER,
    State.ANSWER: Signal.LITERAL_IN_ANSWER,
    State.REASONING: Signal.LITERAL_IN_REASONING,
    State.TOOL: Signal.LITERAL_IN_TOOL,
}


class Bodies(ToolStates):
    """The handlers of all states."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._probe = ""  # whitespace between a recovered header and its block

    # -- answer ----------------------------------------------------------------

    def answer_text(self, text: str, pos: int, end: int) -> int:
        """Text in an answer."""
        self.message.say(text[pos:end], self._base + end)
        return end

    def answer_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in an answer."""
        if marker in wire.TERMINATORS:
            self._begin_boundary(marker, start)
        elif marker == wire.BLOCK_OPEN and self._begin_headerless(text, start):
            return start
        else:
            self.message.say(marker, self._base + end)
        return end

    def _begin_headerless(self, text: str, start: int) -> bool:
        """Hold a block in a body without recipient, if that may be a call (wire_format 5.6)."""
        too_short = self.options.max_call_chars < len(wire.BLOCK_OPEN)
        if self.message.recipient is not None or too_short:
            return False
        if not self.message.is_open:
            self.message.open(None, self._base + start)
        self._tool = ToolBody(self.context, self._base + start, None, headerless=True)
        self._tool.begin(text, self._base, plain=self._plain)
        self._go(Signal.BLOCK)
        return True

    # -- reasoning and headers inside it (wire_format 5.3) ----------------------

    def reasoning_text(self, text: str, pos: int, end: int) -> int:
        """Text in reasoning."""
        self.message.think(text[pos:end], self._base + end)
        return end

    def reasoning_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in reasoning."""
        if marker in wire.TERMINATORS:
            self._begin_boundary(marker, start)
        elif marker == wire.START:
            self._framed_header(self._base + start)
            self._go(Signal.START)
        elif marker == wire.TO:
            self._header = Header.bare(self._base + start, self.options.max_header)
            self._go(Signal.ADDRESSED)
        else:
            self.message.think(marker, self._base + end)
        self._probe = ""
        return end

    def recovery_text(self, text: str, pos: int, end: int) -> int:
        """Text in a header inside reasoning."""
        if self._header.phase is not Phase.DONE:
            pos = self._header.take(text, pos, end)
            if self._header.phase in (Phase.FAILED, Phase.OTHER_ROLE):
                self._no_recovery(self._base + pos)
            return pos
        held = len(self._header.text) + len(self._probe)
        room = max(self.options.max_header - held - len(wire.TAG_PREFIX), 0)
        stop = end - len(text[pos:end].lstrip(wire.WHITESPACE))
        self._probe += text[pos : min(stop, pos + room)]
        if stop < end or stop - pos > room:
            stop = min(stop, pos + room)
            self._no_recovery(self._base + stop)
        return stop

    def recovery_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in a header inside reasoning."""
        if self._header.phase is Phase.DONE:
            held = len(self._header.text) + len(self._probe) + len(marker)
            if marker == wire.TAG_PREFIX and held <= self.options.max_header:
                body = self._base + start - len(self._probe)
                self._leave_reasoning(text, body, recovered=self._probe)
            else:
                self._no_recovery(self._base + start)
            return start
        if not self._header.marker(marker):
            self._no_recovery(self._base + start)
            return start
        signal = self._signal_of(self._header.recipient)
        if signal is not Signal.TOOL_HEADER and self._header.text.startswith(wire.START):
            self._leave_reasoning(text, self._base + end)
        elif (
            signal is not Signal.TOOL_HEADER
            or self.context.resolve(self._header.recipient or "") is None
        ):
            self._no_recovery(self._base + end)
        return end

    def _leave_reasoning(self, text: str, body: int, *, recovered: str | None = None) -> None:
        self.message.close(None, self._header.start)
        self._problem("missing_terminator", "reasoning ended without a terminator")
        self._open(self._header.recipient, text, body, recovered=recovered)

    def _no_recovery(self, end: int) -> None:
        """The header up to position ``end`` is reasoning."""
        self._go(Signal.NO_HEADER)
        self.message.think(self._header.text + self._probe, end)
        self._probe = ""

    # -- boundaries -----------------------------------------------------------

    @property
    def _held(self) -> Boundary:
        assert self._boundary is not None, "a boundary is open in this state"
        return self._boundary

    def boundary_text(self, text: str, pos: int, end: int) -> int:
        """Text behind a terminator that is not decided."""
        reached = self._held.take(text, pos, end)
        if self._held.structural:
            self._structural()
        elif reached < end:
            self._literal(self._base + reached)
        return reached

    def boundary_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker behind a terminator that is not decided."""
        if not self._held.marker(marker):
            self._literal(self._base + start)
            return start
        if self._held.structural and self._structural():
            self._open_by_header(text, end)
        return end

    def _literal(self, end: int) -> None:
        """The terminator was text after all; what is held reaches to position ``end``."""
        held, self._boundary = self._held, None
        self._go(_LITERAL[held.interrupted])
        if held.interrupted is State.TOOL:
            self._body.text(held.text, held.start)
        elif held.interrupted is State.REASONING:
            self.message.think(held.text, end)
        elif held.interrupted is State.ANSWER:
            self.message.say(held.text, end)
        else:
            self._tell_bad_header()
            self.message.say(self._header.text + held.text, end)

    def _structural(self) -> bool:
        """The terminator ends its message; False if a tool body refuses to end here."""
        held = self._held
        if not self._end_at(held):
            self._literal(held.start + len(held.text))
            return False
        self._boundary = None
        header = held.header
        if held.turn_over or (header is not None and header.phase is Phase.OTHER_ROLE):
            self._go(Signal.TURN_OVER)
            if header is not None:
                self._text_after_turn(header.start)
            return False
        if header is None:
            self._go(Signal.MESSAGE_OVER)
            return False
        self._header = header
        header.limit = self.options.max_header
        self._go(Signal.NEXT_HEADER)
        return True

    def _end_at(self, held: Boundary) -> bool:
        """End what the boundary interrupted; False if that is a tool body that goes on."""
        if held.interrupted is State.TOOL:
            return self._decide(self._body.candidate(held.start, held.terminator), Ending())
        if held.interrupted is State.HEADER:
            self._drop_header(held.start)
        else:
            self.message.close(held.terminator, held.start)
        return True

    # -- bounds (wire_format 8)

    def gives_up(self, size: int, pos: int) -> bool:
        """Release what is held if a tail of ``size`` at ``pos`` would pass ``max_header``."""
        held = len(self._probe) if self.state is State.RECOVERY else 0
        if self._boundary is not None:
            held += len(self._boundary.text)
        if self._boundary is None or self._boundary.interrupted is State.HEADER:
            held += len(self._header.text)
        if held + size <= self.options.max_header:
            return False
        end = self._base + pos
        match self.state:
            case State.OPENING:
                self._no_first_header(end)
            case State.HEADER:
                self._bad_header(end)
            case State.RECOVERY:
                self._no_recovery(end)
            case State.INTERRUPTION:
                self._no_interruption()
            case _:
                self._literal(end)
        return True

    # -- tables

    texts: ClassVar = {
        State.OPENING: Framing.opening_text,
        State.BETWEEN: Framing.between_text,
        State.HEADER: Framing.header_text,
        State.ANSWER: answer_text,
        State.REASONING: reasoning_text,
        State.TOOL: ToolStates.tool_text,
        State.RECOVERY: recovery_text,
        State.INTERRUPTION: ToolStates.interruption_text,
        State.BOUNDARY: boundary_text,
        State.OVER: Framing.over_text,
    }
    markers: ClassVar = {
        State.OPENING: Framing.opening_marker,
        State.BETWEEN: Framing.between_marker,
        State.HEADER: Framing.header_marker,
        State.ANSWER: answer_marker,
        State.REASONING: reasoning_marker,
        State.TOOL: ToolStates.tool_marker,
        State.RECOVERY: recovery_marker,
        State.INTERRUPTION: ToolStates.interruption_marker,
        State.BOUNDARY: boundary_marker,
        State.OVER: Framing.over_marker,
    }
