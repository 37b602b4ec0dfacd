"""The machine of a turn: text and special tokens in, events out of ``context.out``.

Rules: here are the two inputs that leave nothing open: a special token, which
is framing for certain (wire_format 1.1), and the end of the stream
(wire_format 4). Everything else is scanned (:mod:`scanner`) and handled
(:mod:`bodies`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .. import wire
from .bodies import Bodies
from .events import TurnEnd
from .standing import Standing
from .states import HOLDING, Signal, State
from .verdict import Ending

if TYPE_CHECKING:
    from .context import Context
    from .events import FinishReason
    from .tool_body import Candidate


class Machine(Bodies):
    """The state of one turn."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.header_cut = False  # the stream ended in a header
        self._unfinished = False  # framing or a call is open at the end of the stream
        if self.options.channel is not None:
            self._open(self.options.channel, "", 0)

    @property
    def over(self) -> bool:
        """Whether the turn is over: whatever follows is not part of it."""
        return self.state is State.OVER

    @property
    def standing(self) -> Standing:
        """Where it stands, for whoever looks on."""
        state, recipient = self.state, self.message.recipient
        return Standing(state.value, self._place(), recipient, self.out.mark, self._next)

    def _place(self) -> str | None:
        if self.state is State.TOOL:  # at the end of the stream it has given its body away
            return None if self._tool is None else self._tool.place.value
        if self.state is State.BOUNDARY:
            return None if self._boundary is None else self._boundary.interrupted.value
        return self._header.phase.value if self.state in HOLDING else None

    # -- special tokens -----------------------------------------------------------

    def special(self, marker: str) -> None:
        """Read one framing marker that is certainly a special token."""
        self._flush_tail()
        start, self._next = self._next, self._next + len(marker)
        if marker == wire.MESSAGE:
            if self._tool is not None:
                self._tool.append(marker, plain=True)
            self._meet(marker, start)
        elif marker == wire.START:
            self._start_certainly(start)
        else:
            self._end_certainly(marker, start)
        self._next = start + len(marker)  # reading again has left it behind
        self.quick = self._find_quick()

    def _start_certainly(self, start: int) -> None:
        """A real ``<|start|>`` opens a header in every body."""
        self._settle_doubt(start)
        if self.state is State.OPENING:
            if self._header.marker(wire.START):
                return
            self._no_first_header(start)
        if self.state is State.HEADER:
            self._bad_header(start)
        self._end_message(None, start)
        if self.state is State.OVER:
            self._text_after_turn(start)
        else:
            self._framed_header(start)
            self._go(Signal.START)

    def _end_certainly(self, marker: str, start: int) -> None:
        """A real terminator ends its message."""
        self._settle_doubt(start)
        if self.state is State.OPENING and self._header.text:
            self._no_first_header(start)
        if self.state is State.HEADER:
            self._drop_header(start)
        self._end_message(marker, start)
        if self.state is State.BETWEEN and marker in wire.TURN_ENDS:
            self._go(Signal.TURN_OVER)

    def _settle_doubt(self, start: int) -> None:
        """Decide what was held: a special token follows at ``start``."""
        if self.state is State.RECOVERY:
            self._no_recovery(start)
        elif self.state is State.INTERRUPTION:
            self._no_interruption()
        elif self.state is State.BOUNDARY:
            if self._held.header is None:
                self._structural()
            else:
                self._literal(start)

    def _end_message(self, marker: str | None, start: int) -> None:
        """Leave the present body or header for good."""
        if self.state is State.TOOL:
            self._end_tool(marker, start)
        elif self.state in (State.ANSWER, State.REASONING):
            was_open = self.message.is_open
            self.message.close(marker, start)
            if marker is None and was_open:
                self._problem("missing_terminator", "a message ended without a terminator")
        elif self.state in (State.BETWEEN, State.OVER):
            return
        if self.state not in (State.BETWEEN, State.OVER):
            self._go(Signal.MESSAGE_OVER)

    def _end_tool(self, marker: str | None, start: int) -> None:
        tool = self._body
        tool.interrupt()
        candidate = tool.candidate(start, marker)
        first = tool.undecided
        if first is None or candidate.whole:
            self._settle(candidate, Ending())
            self._close(candidate)
            return
        self._refute(first, barred=False)
        self._flush_tail()
        self._settle_doubt(start)
        self._end_message(marker, start)

    # -- the end of the stream: each of these says whether it is dealt with ---------

    def end(self, *, cut: bool) -> None:
        """The stream is over; ``cut`` says that more would have come."""
        self.pause()
        while not self._ends[self.state](self, cut):
            pass
        complete = not cut and not self._unfinished
        reason: FinishReason = "tool_calls" if self.context.calls else "stop"
        self.out.put(TurnEnd, reason if complete else "length", complete, end=self._next)

    def _end_opening(self, cut: bool) -> bool:
        header = self._header
        if wire.START in header.text:
            return self._end_header(cut)
        if self._tail:
            self._flush_tail()
        elif header.text:
            self._no_first_header(self._next)
        else:
            return True
        return False

    def _end_between(self, cut: bool) -> bool:
        if not self._tail:
            return True
        if not wire.START.startswith(self._tail):
            self._flush_tail()
            return False
        self._framed_header(self._next - len(self._tail))
        self._tail = ""
        return self._end_header(cut)

    def _end_header(self, _cut: bool) -> bool:
        """A header that the stream cuts is framing (wire_format 3.1.8)."""
        if not wire.MESSAGE.startswith(self._tail):
            self._flush_tail()
            return False
        self._tail = ""
        self._unfinished = self.header_cut = True
        self._drop_header(self._next)
        return True

    def _end_text(self, _cut: bool) -> bool:
        self._flush_tail()
        self.message.close(None, self._next)
        return True

    def _end_recovery(self, _cut: bool) -> bool:
        self._no_recovery(self._next - len(self._tail))
        return False

    def _end_interruption(self, _cut: bool) -> bool:
        self._no_interruption()
        return False

    def _end_tool_body(self, cut: bool) -> bool:
        tool = self._body
        in_tag = bool(self._tail) and tool.may_become_tag(self._tail)
        if not in_tag:
            self._flush_tail()
            if self._tool is not tool:  # the tail was too much for the body
                return False
        self._tail = ""
        candidate = tool.candidate(self._next, None)
        first = tool.undecided
        if first is not None and (cut or not candidate.whole):
            self._refute(first, barred=cut)
            return False
        self._note_unfinished(candidate, in_tag)
        self._settle(candidate, Ending(cut or in_tag, unfinished=True, in_tag=in_tag))
        self._close(candidate)
        return True

    def _note_unfinished(self, candidate: Candidate, in_tag: bool) -> None:
        chosen = candidate.chosen
        if chosen is not None and not self._body.misquotes(chosen, in_tag=in_tag):
            self._unfinished = in_tag or chosen.is_open or chosen.wrapped

    def _end_boundary(self, cut: bool) -> bool:
        held = self._held
        if self._tail and not held.cut_by(self._tail):
            self._flush_tail()
            return False
        if held.interrupted is State.TOOL and not self._end_tool_at_boundary(cut):
            return False
        if held.interrupted is not State.TOOL:
            self._end_at(held)
        if held.header is None and not self._tail:
            return True
        start = held.start + len(held.run)
        if held.turn_over:
            self._text_after_turn(start)
            return True
        self._framed_header(start)
        self._tail = ""
        return self._end_header(cut)

    def _end_tool_at_boundary(self, cut: bool) -> bool:
        """End a tool body whose terminator is the last of the stream (wire_format 4, 5.4)."""
        held, tool = self._held, self._body
        cut_here = cut and held.header is None and not self._tail
        if tool.undecided is None or not cut_here:
            candidate = tool.candidate(held.start, held.terminator)
            if self._decide(candidate, Ending(cut=cut_here)):
                return True
        if tool.undecided is None:  # refused by a note of the first stage
            self._literal(self._next)
        else:
            self._refute(tool.undecided, barred=cut)
        return False

    def _end_over(self, _cut: bool) -> bool:
        self._flush_tail()
        return True

    _ends: ClassVar = {
        State.OPENING: _end_opening,
        State.BETWEEN: _end_between,
        State.HEADER: _end_header,
        State.ANSWER: _end_text,
        State.REASONING: _end_text,
        State.TOOL: _end_tool_body,
        State.RECOVERY: _end_recovery,
        State.INTERRUPTION: _end_interruption,
        State.BOUNDARY: _end_boundary,
        State.OVER: _end_over,
    }
