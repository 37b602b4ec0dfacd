"""What text and markers mean in each state of the machine (wire_format 3 to 5).

Rules: a handler takes what it is sure of and moves the machine by the table in
:mod:`states`. What is held because it may be framing is held by an object of
its own (a header, a boundary) and released from there, never scanned again.
Nothing here knows what is inside a tool body. Positions called ``end`` or
``body`` are those of the stream, ``pos`` and ``start`` those of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import wire
from .boundary import Boundary
from .context import MAX_REFUTATIONS
from .handover import read_note
from .header import Header, Phase
from .scanner import Scanner
from .states import Signal, State
from .tool_body import Candidate, ToolBody
from .verdict import Ending, settle, too_long

if TYPE_CHECKING:
    from .context import Context

_LITERAL: Final = {
    State.HEADER: Signal.LITERAL_IN_ANSWER,
    State.ANSWER: Signal.LITERAL_IN_ANSWER,
    State.REASONING: Signal.LITERAL_IN_REASONING,
    State.TOOL: Signal.LITERAL_IN_TOOL,
}


class Bodies(Scanner):
    """The handlers of all states."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        first = Phase.UNFRAMED if self.options.framed else Phase.IMPLICIT
        self._header = Header(first, 0, self.options.max_header)
        self._probe = ""  # whitespace between a recovered header and its block
        self._boundary: Boundary | None = None
        self.discarding = False  # text after the turn has been reported

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
        self, recipient: str | None, text: str, body: int, *, recovered: bool = False
    ) -> None:
        """Open the message whose header is read. ``text`` is what is known of its body."""
        signal = self._signal_of(recipient)
        self.message.open(recipient, body)
        if signal is Signal.TOOL_HEADER:
            note = read_note(self._header.text) if self.options.framed else None
            self._tool = ToolBody(self.context, body, recipient, recovered=recovered, note=note)
            self._tool.append(text, plain=self._plain)
        self._go(signal)

    def _open_by_header(self, text: str, pos: int) -> int:
        self._open(self._header.recipient, text[pos:], self._base + pos)
        return pos

    # -- first header, and text without one -----------------------------------

    def _opening_text(self, text: str, pos: int, end: int) -> int:
        pos = self._header.take(text, pos, end)
        if self._header.phase is Phase.FAILED:
            self._no_first_header(self._base + pos)
        return pos

    def _opening_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if not self._header.marker(marker):
            self._no_first_header(self._base + start)
            return start
        return self._open_by_header(text, end) if self._header.phase is Phase.DONE else end

    def _no_first_header(self, end: int) -> None:
        """What looked like a first header is an answer; it reaches to position ``end``."""
        self._go(Signal.NO_HEADER)
        self.message.say(self._header.text, end)

    # -- between messages -----------------------------------------------------

    def _between_text(self, text: str, pos: int, end: int) -> int:
        pos = end - len(text[pos:end].lstrip(wire.WHITESPACE))
        if pos < end:
            self._implicit_header(pos)
        return pos

    def _between_marker(self, marker: str, text: str, start: int, end: int) -> int:
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

    def _header_text(self, text: str, pos: int, end: int) -> int:
        pos = self._header.take(text, pos, end)
        self._judge_header(pos)
        return pos

    def _judge_header(self, pos: int) -> None:
        """See whether the header, read up to ``pos``, can still become one."""
        if self._header.phase is Phase.OTHER_ROLE:
            self._go(Signal.ROLE_HEADER)
            self._text_after_turn(self._header.start)
        elif self._header.phase is Phase.FAILED:
            self._bad_header(self._base + pos)

    def _header_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if self._header.marker(marker):
            return self._open_by_header(text, end)
        if marker in wire.TERMINATORS:
            self._begin_boundary(marker, start)
            return end
        self._bad_header(self._base + start)
        return start

    def _bad_header(self, end: int) -> None:
        """The header up to position ``end`` is none: a message without recipient begins with it."""
        self._go(Signal.NO_HEADER)
        self._problem("bad_header", f"{self._header.text!r} is not a header; it is shown as text")
        self.message.say(self._header.text, end)

    def _drop_header(self, end: int) -> None:
        self._problem("bad_header", f"the header {self._header.text!r} has no body", end)

    # -- answer ----------------------------------------------------------------

    def _answer_text(self, text: str, pos: int, end: int) -> int:
        self.message.say(text[pos:end], self._base + end)
        return end

    def _answer_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if marker in wire.TERMINATORS:
            self._begin_boundary(marker, start)
        elif marker in (wire.BLOCK_OPEN, wire.INVOKE_OPEN) and self._begin_headerless(text, start):
            return start
        else:
            self.message.say(marker, self._base + end)
        return end

    def _begin_headerless(self, text: str, start: int) -> bool:
        """Hold a block in a body without recipient, if that may be a call (wire_format 5.6)."""
        if self.message.recipient is not None:
            return False
        if not self.message.is_open:
            self.message.open(None, self._base + start)
        self._tool = ToolBody(self.context, self._base + start, None, headerless=True)
        self._tool.append(text[start:], plain=self._plain)
        self._go(Signal.BLOCK)
        return True

    # -- reasoning and headers inside it (wire_format 5.3) ----------------------

    def _reasoning_text(self, text: str, pos: int, end: int) -> int:
        self.message.think(text[pos:end], self._base + end)
        return end

    def _reasoning_marker(self, marker: str, text: str, start: int, end: int) -> int:
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

    def _recovery_text(self, text: str, pos: int, end: int) -> int:
        if self._header.phase is not Phase.DONE:
            pos = self._header.take(text, pos, end)
            if self._header.phase in (Phase.FAILED, Phase.OTHER_ROLE):
                self._no_recovery(self._base + pos)
            return pos
        room = self.options.max_header - len(self._probe)
        stop = end - len(text[pos:end].lstrip(wire.WHITESPACE))
        self._probe += text[pos : min(stop, pos + room)]
        if stop < end or stop - pos > room:
            stop = min(stop, pos + room)
            self._no_recovery(self._base + stop)
        return stop

    def _recovery_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if self._header.phase is Phase.DONE:
            if marker == wire.TAG_PREFIX:
                body = self._base + start - len(self._probe)
                self._leave_reasoning(self._probe + text[start:], body, recovered=True)
            else:
                self._no_recovery(self._base + start)
            return start
        if not self._header.marker(marker):
            self._no_recovery(self._base + start)
            return start
        signal = self._signal_of(self._header.recipient)
        if signal is not Signal.TOOL_HEADER and self._header.text.startswith(wire.START):
            self._leave_reasoning(text[end:], self._base + end)
        elif (
            signal is not Signal.TOOL_HEADER
            or self.context.resolve(self._header.recipient or "") is None
        ):
            self._no_recovery(self._base + end)
        return end

    def _leave_reasoning(self, rest: str, body: int, *, recovered: bool = False) -> None:
        self.message.close(None, self._header.start)
        self._problem("missing_terminator", "reasoning ended without a terminator")
        self._open(self._header.recipient, rest, body, recovered=recovered)

    def _no_recovery(self, end: int) -> None:
        """The header up to position ``end`` is reasoning."""
        self._go(Signal.NO_HEADER)
        self.message.think(self._header.text + self._probe, end)
        self._probe = ""

    # -- tool bodies -------------------------------------------------------------

    @property
    def _body(self) -> ToolBody:
        assert self._tool is not None, "a tool body is open in this state"
        return self._tool

    def _tool_text(self, text: str, pos: int, end: int) -> int:
        tool = self._body
        room = tool.limit - self._base - pos
        if end - pos > room >= 0 and not tool.too_long:
            tool.text(text[pos : pos + room], self._base + pos)
            return self._outgrow(text, pos + room)
        tool.text(text[pos:end], self._base + pos)
        return end

    def _tool_marker(self, marker: str, text: str, start: int, end: int) -> int:
        tool, position = self._body, self._base + start
        if self._base + end > tool.limit and not tool.too_long:
            return self._outgrow(text, start)
        if marker in wire.TERMINATORS:
            tool.interrupt()
            self._begin_boundary(marker, start)
        elif marker == wire.START and not tool.headerless:
            tool.interrupt()
            self._framed_header(position)
            self._go(Signal.START)
        elif marker == wire.START:
            tool.text(marker, position)
        elif marker == wire.MESSAGE:
            tool.noise(position)
        else:
            tool.tag(marker, position)
        return end

    def _outgrow(self, text: str, pos: int) -> int:
        """The body passes ``max_call_chars``; the position to go on from."""
        tool = self._body
        if tool.undecided is not None:
            self._refute(tool.undecided, barred=True)
            return len(text)
        tool.mute()
        tool.too_long = True
        if tool.headerless:
            self._settle(tool.candidate(self._base + pos, None), Ending(barred=True))
            self._go(Signal.CONTENT)
        else:
            too_long(self.context, tool)
        return pos

    def _interruption_text(self, text: str, pos: int, end: int) -> int:
        pos = self._header.take(text, pos, end)
        if self._header.phase is Phase.OTHER_ROLE and not self._body.in_invoke:
            self._interrupt(pos)
        elif self._header.phase in (Phase.FAILED, Phase.OTHER_ROLE):
            self._no_interruption()
        return pos

    def _interruption_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if not self._header.marker(marker):
            self._no_interruption()
            return start
        self._interrupt_by_header(text, end)
        return end

    def _no_interruption(self) -> None:
        """The header that had begun is text of the body."""
        self._go(Signal.NO_HEADER)
        self._body.text(self._header.text, self._header.start)

    def _interrupt_by_header(self, text: str, end: int) -> None:
        if self._decide(self._body.candidate(self._header.start, None), Ending()):
            self._open_by_header(text, end)
        else:
            self._no_interruption()

    def _interrupt(self, pos: int) -> None:
        """A header of another role ends the turn (wire_format 3.1.6)."""
        if self._decide(self._body.candidate(self._header.start, None), Ending()):
            self._go(Signal.ROLE_HEADER)
            self._text_after_turn(self._header.start)
        else:
            self._no_interruption()

    # -- the end of a tool body ---------------------------------------------------

    def _decide(self, candidate: Candidate, ending: Ending) -> bool:
        """End the tool body at ``candidate`` if it ends there; else it is undecided."""
        tool = self._body
        was_undecided = tool.undecided is not None
        if tool.note is None and candidate.doubtful and self.context.refutations == MAX_REFUTATIONS:
            self._distrust("text was read again too often")
        if tool.accepts(candidate):
            self._settle(candidate, ending)
            self._close(candidate)
            return True
        if not was_undecided and tool.note is None:
            tool.provisional.withdraw()
            self._problem(
                "undecided",
                f"the message to {tool.recipient!r} may end here or be quoting; the rest will tell",
            )
        return False

    def _settle(self, candidate: Candidate, ending: Ending) -> None:
        """Tell what the body's calls are worth. A body past its bound settles the turn's trust."""
        tool = self._body
        if tool.too_long and not candidate.whole and not tool.headerless:
            self._distrust("a call that was too long has no certain end")
        noted = tool.note is not None and tool.note.barred
        barred = ending.barred or noted or not self.context.trusted
        settle(self.context, tool, candidate, ending._replace(barred=barred))
        self._tool = None

    def _close(self, candidate: Candidate) -> None:
        self.message.close(candidate.terminator, candidate.end)
        if candidate.terminator is None and candidate.end < self._next:
            self._problem("missing_terminator", "a tool message ended without a terminator")

    def _refute(self, first: Candidate, *, barred: bool) -> None:
        """End the undecided body at its first candidate and read the rest again (wire_format 5.4)."""
        self.context.refutations += 1
        rope, end = self._body.rope, self._next
        if barred:
            self._distrust("an undecided message was cut")
        self._settle(first, Ending(barred=barred))
        self.message.close(first.terminator, first.end)
        self._boundary, self._tail = None, ""
        self.state = State.OVER if first.terminator in wire.TURN_ENDS else State.BETWEEN
        self._next = first.resume
        for text, plain in rope.stretches(first.resume, end):
            self._push(text, plain)

    def _distrust(self, why: str) -> None:
        if self.context.trusted:
            self.context.trusted = False
            self._problem("untrusted", f"{why}; no later call of this turn is run")

    # -- boundaries -----------------------------------------------------------

    def _begin_boundary(self, marker: str, start: int) -> None:
        self._boundary = Boundary(marker, self._base + start, self.state, self.options.max_header)
        self._go(Signal.TERMINATOR)

    @property
    def _held(self) -> Boundary:
        assert self._boundary is not None, "a boundary is open in this state"
        return self._boundary

    def _boundary_text(self, text: str, pos: int, end: int) -> int:
        reached = self._held.take(text, pos, end)
        if self._held.structural:
            if self._structural():
                self._judge_header(reached)
        elif reached < end:
            self._literal(reached)
        return reached

    def _boundary_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if not self._held.marker(marker):
            self._literal(start)
            return start
        if self._held.structural and self._structural():
            self._open_by_header(text, end)
        return end

    def _literal(self, pos: int) -> None:
        """The terminator was text after all."""
        held, self._boundary = self._held, None
        end = self._base + pos
        self._go(_LITERAL[held.interrupted])
        if held.interrupted is State.TOOL:
            self._body.text(held.text, held.start)
        elif held.interrupted is State.REASONING:
            self.message.think(held.text, end)
        elif held.interrupted is State.ANSWER:
            self.message.say(held.text, end)
        else:
            self._problem(
                "bad_header", f"{self._header.text!r} is not a header; it is shown as text"
            )
            self.message.say(self._header.text + held.text, end)

    def _structural(self) -> bool:
        """The terminator ends its message; False if a tool body refuses to end here."""
        held = self._held
        if not self._end_at(held, Ending()):
            self._literal(held.start + len(held.text) - self._base)
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
        self._go(Signal.NEXT_HEADER)
        return True

    def _end_at(self, held: Boundary, ending: Ending) -> bool:
        """End what the boundary interrupted; False if that is a tool body that goes on."""
        if held.interrupted is State.TOOL:
            return self._decide(self._body.candidate(held.start, held.terminator), ending)
        if held.interrupted is State.HEADER:
            self._drop_header(held.start)
        else:
            self.message.close(held.terminator, held.start)
        return True

    # -- after the turn ---------------------------------------------------------

    def _over_text(self, text: str, pos: int, end: int) -> int:
        blanks = end - pos - len(text[pos:end].lstrip(wire.WHITESPACE))
        if blanks < end - pos:
            self._text_after_turn(self._base + pos + blanks)
        return end

    def _over_marker(self, marker: str, text: str, start: int, end: int) -> int:
        if marker not in wire.TERMINATORS:
            self._text_after_turn(self._base + start)
        return end

    def _text_after_turn(self, position: int) -> None:
        if not self.discarding:
            self.discarding = True
            self._problem(
                "text_after_turn", "text after the end of the turn is discarded", position
            )

    texts = {
        State.OPENING: _opening_text,
        State.BETWEEN: _between_text,
        State.HEADER: _header_text,
        State.ANSWER: _answer_text,
        State.REASONING: _reasoning_text,
        State.TOOL: _tool_text,
        State.RECOVERY: _recovery_text,
        State.INTERRUPTION: _interruption_text,
        State.BOUNDARY: _boundary_text,
        State.OVER: _over_text,
    }
    markers = {
        State.OPENING: _opening_marker,
        State.BETWEEN: _between_marker,
        State.HEADER: _header_marker,
        State.ANSWER: _answer_marker,
        State.REASONING: _reasoning_marker,
        State.TOOL: _tool_marker,
        State.RECOVERY: _recovery_marker,
        State.INTERRUPTION: _interruption_marker,
        State.BOUNDARY: _boundary_marker,
        State.OVER: _over_marker,
    }
