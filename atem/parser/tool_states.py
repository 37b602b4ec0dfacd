"""The states of a tool body and its end (wire_format 5.4).

Rules: text and tags go to the open :class:`ToolBody`, which knows where it may
end; a header inside it is held until it is one. Nothing here knows what is
inside a body. Positions are called as in :mod:`framing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from .framing import Framing
from .header import Phase
from .states import Signal
from .verdict import Ending, settle, too_long

if TYPE_CHECKING:
    from .tool_body import Candidate, ToolBody


class ToolStates(Framing):
    """The handlers of a tool body, and the decision where it ends."""

    # -- tool bodies -------------------------------------------------------------

    @property
    def _body(self) -> ToolBody:
        assert self._tool is not None, "a tool body is open in this state"
        return self._tool

    def tool_text(self, text: str, pos: int, end: int) -> int:
        """Text in a tool body."""
        tool = self._body
        room = max(tool.limit - self._base - pos, 0)
        if end - pos > room and not tool.too_long:
            tool.text(text[pos : pos + room], self._base + pos)
            return self._outgrow(text, pos + room)
        tool.text(text[pos:end], self._base + pos)
        return end

    def tool_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in a tool body."""
        tool, position = self._body, self._base + start
        if marker in wire.TERMINATORS:
            tool.interrupt()
            self._begin_boundary(marker, start)
        elif marker == wire.START and not tool.headerless:
            tool.interrupt()
            self._framed_header(position)
            self._go(Signal.START)
        elif self._base + end > tool.limit and not tool.too_long:
            return self._outgrow(text, start)
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

    def interruption_text(self, text: str, pos: int, end: int) -> int:
        """Text in a header inside a tool body."""
        pos = self._header.take(text, pos, end)
        if self._header.phase is Phase.OTHER_ROLE:
            self._interrupt_by_role()
        elif self._header.phase is Phase.FAILED:
            self._no_interruption()
        return pos

    def interruption_marker(self, marker: str, text: str, start: int, end: int) -> int:
        """A marker in a header inside a tool body."""
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

    def _interrupt_by_role(self) -> None:
        """A header of another role ends the turn, but inside an invoke (wire_format 3.1.6)."""
        candidate = self._body.candidate(self._header.start, None)
        chosen = candidate.chosen
        if (chosen is None or not chosen.is_open) and self._decide(candidate, Ending()):
            self._go(Signal.ROLE_HEADER)
            self._text_after_turn(self._header.start)
        else:
            self._no_interruption()

    # -- the end of a tool body ---------------------------------------------------

    def _decide(self, candidate: Candidate, ending: Ending) -> bool:
        """End the tool body at ``candidate`` if it ends there; else it is undecided."""
        tool = self._body
        was_undecided = tool.undecided is not None
        if tool.note is None and candidate.doubtful and not self.context.may_read_again:
            tool.mute()
            tool.provisional.withdraw()
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
        barred, cut = ending.barred or not self.context.trusted, ending.cut
        if tool.note is not None:
            barred, cut = barred or tool.note.barred, cut or tool.note.cut
        settle(self.context, tool, candidate, ending._replace(barred=barred, cut=cut))
        self._tool = None

    def _close(self, candidate: Candidate) -> None:
        self.message.close(candidate.terminator, candidate.end)
        if candidate.terminator is None and candidate.end < self._next:
            self._problem("missing_terminator", "a tool message ended without a terminator")

    def _refute(self, first: Candidate, *, barred: bool) -> None:
        """End the undecided body at its first candidate; read the rest again (wire_format 5.4)."""
        self.context.refutations += 1
        rope, end = self._body.rope, self._next
        if barred:
            self._distrust("an undecided message was cut")
        self._settle(first, Ending(barred=barred))
        self.message.close(first.terminator, first.end)
        self._boundary, self._tail = None, ""
        self._go(Signal.MESSAGE_OVER)
        if first.terminator in wire.TURN_ENDS:
            self._go(Signal.TURN_OVER)
        self._next = first.resume
        for text, plain in rope.stretches(first.resume, end):
            self._push(text, plain)

    def _distrust(self, why: str) -> None:
        if self.context.trusted:
            self.context.trusted = False
            self._problem("untrusted", f"{why}; no later call of this turn is run")
