"""Input to markers and text: the scanning half of the machine.

Rules: a scan step looks for the next marker of the present body and hands the
text before it, then the marker, to the handler of the present state. A tail
that may still become a marker is held, at most one marker long. What text and
markers mean is the handlers' business (:mod:`bodies`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import wire
from . import lexer
from .events import Problem
from .open_message import OpenMessage
from .states import TRANSITIONS, Signal, State
from .token_clock import TokenClock

if TYPE_CHECKING:
    from .context import Context
    from .lexer import Lexer
    from .tool_body import ToolBody

_LEXERS: Final[dict[State, tuple[Lexer, Lexer]]] = {
    State.OPENING: (lexer.FRAMING, lexer.NOTHING),
    State.BETWEEN: (lexer.FRAMING, lexer.NOTHING),
    State.HEADER: (lexer.FRAMING, lexer.NOTHING),
    State.ANSWER: (lexer.ANSWER, lexer.NOTHING),
    State.REASONING: (lexer.REASONING, lexer.PLAIN_REASONING),
    State.TOOL: (lexer.TOOL, lexer.PLAIN_TOOL),
    State.RECOVERY: (lexer.PROBE, lexer.PLAIN_PROBE),
    State.INTERRUPTION: (lexer.FRAMING, lexer.NOTHING),
    State.BOUNDARY: (lexer.FRAMING, lexer.NOTHING),
    State.OVER: (lexer.FRAMING, lexer.NOTHING),
}
"""For each state the lexer for text, and the one for text of known provenance."""

TextHandler = Callable[[Any, str, int, int], int]
"""``(machine, text, pos, end)`` -> how far the text was taken."""

MarkerHandler = Callable[[Any, str, str, int, int], int]
"""``(machine, marker, text, start, end)`` -> ``end``, or ``start`` to look again in another state."""


class Scanner:
    """Scans text by the state of the machine. ``fed`` is the number of characters that went in."""

    texts: ClassVar[Mapping[State, TextHandler]]
    markers: ClassVar[Mapping[State, MarkerHandler]]

    def __init__(self, context: Context) -> None:
        self.context = context
        self.options = context.options
        self.out = context.out
        self.clock = TokenClock()
        self.message = OpenMessage(self.out, self.clock)
        self.fed = 0
        self.state = State.OPENING
        self._lexers = dict(_LEXERS)
        self._adapt_lexers()
        self._tail = ""
        self._tail_plain = False
        self._base = 0  # position of the first character of the text being scanned
        self._next = 0  # position of the next character to be scanned
        self._plain = False
        self._tool: ToolBody | None = None

    @property
    def settled(self) -> int:
        """The position before which nothing will be counted again."""
        return self.out.mark

    def _adapt_lexers(self) -> None:
        recover = self.options.recover
        if "reasoning" not in recover:
            self._lexers[State.REASONING] = _LEXERS[State.ANSWER]
        if "headerless" in recover:
            self._lexers[State.ANSWER] = (
                lexer.ANSWER_WITH_BLOCKS,
                lexer.PLAIN_ANSWER_WITH_BLOCKS,
            )

    def text(self, text: str, *, plain: bool = False) -> None:
        """Read text. ``plain`` says that no marker in it is framing (wire_format 1.1)."""
        self.fed += len(text)
        self._push(text, plain)

    def _push(self, text: str, plain: bool) -> None:
        base, pos = self._next, 0
        self._next += len(text)
        if self._tool is not None:
            self._tool.append(text, plain=plain)
        if self._tail:
            tail, self._tail = self._tail, ""
            text, base = tail + text, base - len(tail)
            if plain is not self._tail_plain:
                self._base, self._plain = base, plain
                pos = self._seam(text, len(tail))
        self._base, self._plain = base, plain
        size = len(text)
        while pos < size:
            pos = self._scan(text, pos, plain)

    def _scan(self, text: str, pos: int, plain: bool) -> int:
        """Take the text up to the next marker, then the marker; the position reached."""
        state = self.state
        lex = self._lexers[state][plain]
        found = lex.search(text, pos)
        if found is None:
            return self._take(text, pos, len(text))
        start = found.start()
        if start > pos:
            reached = self._take(text, pos, start)
            if reached != start or self.state is not state:
                return reached
        if text[start] == "t" and not self._is_addressed(text, start, pos):
            return self._take(text, start, found.end())
        if not lex.is_whole(found, text):
            self._tail, self._tail_plain = text[start:], plain
            return len(text)
        return self.markers[state](self, found.group(), text, start, found.end())

    def _take(self, text: str, pos: int, end: int) -> int:
        return self.texts[self.state](self, text, pos, end)

    def _is_addressed(self, text: str, start: int, pos: int) -> bool:
        """Whether a ``to=`` stands where a header may begin: after whitespace, or first."""
        before = text[start - 1] if start > pos else self.message.last
        return not before or before in wire.WHITESPACE

    def _seam(self, text: str, size: int) -> int:
        """Join a held tail of ``size`` to text of other provenance: only a tag can span both."""
        lex = self._lexers[self.state][True]
        found = lex.match(text)
        if found is None or text[0] == "t":
            self._flush(text[:size])
            return size
        if not lex.is_whole(found, text):
            self._tail, self._tail_plain = text, True
            return len(text)
        return self.markers[self.state](self, found.group(), text, 0, found.end())

    def _flush_tail(self) -> None:
        tail, self._tail = self._tail, ""
        self._base = self._next - len(tail)
        self._flush(tail)

    def _flush(self, text: str) -> None:
        """Take held text as what it turned out to be: no marker."""
        pos = 0
        while pos < len(text):
            pos = self._take(text, pos, len(text))

    def _meet(self, marker: str, start: int) -> None:
        """Hand a special marker to the present state, as often as the state changes under it."""
        self._base = start
        while self.markers[self.state](self, marker, marker, 0, len(marker)) == 0:
            pass

    def _go(self, signal: Signal) -> None:
        self.state = TRANSITIONS[self.state][signal]

    def _problem(self, code: str, text: str, end: int = 0) -> None:
        self.out.put(Problem, code, text, end=end)
