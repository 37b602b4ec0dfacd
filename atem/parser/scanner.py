"""Input to markers and text: the scanning half of the machine.

Rules: a scan step looks for the next marker of the present body and hands the
text before it, then the marker, to the handler of the present state, whose
business their meaning is. A tail that may still become a marker is held, at
most one marker long. Nearly every token is plain text of an open body; for
those, and for those only, the quick path makes the event itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from .. import wire
from . import lexer
from .emitter import new_event
from .events import ArgumentsDelta, ContentDelta, Problem, ReasoningDelta
from .open_message import OpenMessage
from .rope import MAX_LOOSE
from .states import FLAT, HOLDING, TRANSITIONS, Signal, State
from .token_clock import TokenClock

if TYPE_CHECKING:
    import re

    from .context import Context
    from .events import Event
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
"""``(machine, marker, text, start, end)`` -> ``end``; ``start`` to look again in another state."""


_quote: Final = encode_basestring  # values.escape_json without a call in between
_HELD_STEP: Final = 8
_search_tool: Final = lexer.TOOL.search


class Held(Enum):
    """Says that a token was read and brought no event."""

    HELD = "held"


HELD: Final = Held.HELD
Quick: TypeAlias = "Callable[[str], Event | Held | None]"
_ADDRESS_ENDS: Final = frozenset(("", "t", "o"))


def never(_text: str) -> Event | Held | None:
    """Read no token the quick way."""
    return None


class Scanner:
    """Scans text by the state of the machine."""

    # What the subclasses make of it.
    gives_up: Callable[[int, int], bool]
    """``(size, pos)``: whether a tail of ``size`` at ``pos`` is too much on top of what is held;
    then that was released."""
    texts: ClassVar[Mapping[State, TextHandler]]
    markers: ClassVar[Mapping[State, MarkerHandler]]

    def __init__(self, context: Context) -> None:
        self.context = context
        self.options = context.options
        self.out = context.out
        self.clock = TokenClock()
        self.message = OpenMessage(self.out, self.clock)
        self.state = State.OPENING
        self._lexers = dict(_LEXERS)
        self._adapt_lexers()
        self._search_answer = self._lexers[State.ANSWER][False].search
        self._search_reasoning = self._lexers[State.REASONING][False].search
        self._tail = ""
        self._tail_plain = False
        self._base = 0  # position of the first character of the text being scanned
        self._next = 0  # position of the next character to be scanned
        self._index: int | None = None  # of the call whose value is being read
        self.quick: Quick = never
        self._plain = False
        self._tool: ToolBody | None = None

    @property
    def settled(self) -> int:
        """The position before which no token will be counted again.

        A tool body that is not undecided ends where scanning is, or where what is held begins.
        """
        tool = self._tool
        if tool is None or tool.undecided is not None:
            return self.out.mark
        return max(self.out.mark, self._next - 2 * self.options.max_header - wire.MAX_TAG)

    def _adapt_lexers(self) -> None:
        recover = self.options.recover
        if "reasoning" not in recover:
            self._lexers[State.REASONING] = _LEXERS[State.ANSWER]
        if "headerless" in recover:
            self._lexers[State.ANSWER] = (
                lexer.ANSWER_WITH_BLOCKS,
                lexer.PLAIN_ANSWER_WITH_BLOCKS,
            )

    @property
    def position(self) -> int:
        """The number of characters that went in."""
        return self._next

    def text(self, text: str, *, plain: bool = False) -> None:
        """Read text. ``plain`` says that no marker in it is framing (wire_format 1.1)."""
        self._push(text, plain)
        self.quick = self._find_quick()

    def pause(self) -> None:
        """Read the next token the long way, whatever it is."""
        self.quick = never

    # -- the way of nearly every token: body text, and at most the beginning of a marker ---

    def _find_quick(self) -> Quick:
        """What reads the next token if it is body text (:attr:`quick`).

        ``quick(text)`` is the one event that ``text`` brings, or ``HELD`` if it
        brings none yet. None means that there is more to it: then nothing was
        read, and :meth:`text` has to be called.
        """
        if self._plain or not self.message.is_open or (self._tail and self._tail_plain):
            return never
        self._tail_plain = False
        state, tool = self.state, self._tool
        if state is State.ANSWER:
            return self._quick_answer
        if state is State.REASONING and self.message.flows:
            return self._quick_reasoning
        if state is State.TOOL and tool is not None and tool.is_flat:
            self._index = tool.streaming
            return self._marked_value if self._index is None else self._quick_value
        return never

    def _before_marker(self, text: str, found: re.Match[str] | None) -> str | None:
        """``text`` up to the marker ``found`` at its end, which becomes the tail.

        None, and nothing has changed, if the marker is whole.
        """
        if found is None:
            self._tail = ""
            return text
        start = found.start()
        if found.lastindex:
            return None
        if text[start] == "t" and not self._is_addressed(text, start, 0):
            start = len(text)
        self._tail = text[start:]
        return text[:start]

    def _quick_answer(self, text: str) -> Event | Held | None:
        if self._tail:
            text = self._tail + text
        if "<" in text:
            before = self._before_marker(text, self._search_answer(text))
            if before is None:
                return None
            text = before
        else:
            self._tail = ""
        start = self.out.mark
        self.out.mark = end = start + len(text)
        self._next = end + len(self._tail)
        return new_event(ContentDelta, (text, start, end)) if text else HELD

    def _quick_reasoning(self, text: str) -> Event | Held | None:
        if self._tail:
            text = self._tail + text
        # A " to=" must be held from its beginning on, wherever the token ends in it.
        if "<" in text or "=" in text or text[-1:] in _ADDRESS_ENDS:
            before = self._before_marker(text, self._search_reasoning(text))
            if before is None:
                return None
            text = before
        else:
            self._tail = ""
        start = self.out.mark
        self.out.mark = end = start + len(text)
        self._next = end + len(self._tail)
        if not text:
            return HELD
        self.message.last = text[-1]
        return new_event(ReasoningDelta, (text, start, end))

    def _quick_value(self, text: str) -> Event | Held | None:
        if self._tail or "<" in text or not text:
            return self._marked_value(text)
        tool, start = self._tool, self._next
        end = start + len(text)
        if tool is None or end > tool.limit:
            return None
        loose, second = tool.rope.loose, tool.second
        loose.append(text)
        if len(loose) >= MAX_LOOSE:
            tool.rope.pack()
        if second is not None and second.place not in FLAT:
            second.text(text, start)
        self._next = self.out.mark = end
        return new_event(ArgumentsDelta, (self._index, _quote(text)[1:-1], start, end))

    def _marked_value(self, text: str) -> Event | Held | None:
        """Text of a tool body with no more to it than one tag that is quoted in a value.

        It could do the work of :meth:`_quick_value` too, for a tenth more time.
        """
        tool, tail, after = self._tool, self._tail, self._next + len(text)
        if tool is None or after > tool.limit:
            return None
        value = tail + text if tail else text
        tag = found = None
        if "<" in value:
            found = _search_tool(value)
            if found is not None and found.lastindex:
                tag = found
                found = _search_tool(value, tag.end())
                if not tool.quotes(tag.group()) or (found is not None and found.lastindex):
                    return None
        if found is not None:
            stop = found.start()
            self._tail = value[stop:]
            value = value[:stop]
        elif tail:
            self._tail = ""
        loose, second = tool.rope.loose, tool.second
        loose.append(text)
        if len(loose) >= MAX_LOOSE:
            tool.rope.pack()
        if tag is not None:
            tool.quote(value, self._next - len(tail), tag)
        elif second is not None and second.place not in FLAT:
            second.text(value, self._next - len(tail))
        self._next = after
        index = self._index
        if not value or index is None:
            return HELD
        out = self.out
        start = out.mark
        out.mark = end = start + len(value)
        return new_event(ArgumentsDelta, (index, _quote(value)[1:-1], start, end))

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
        size, lexers, texts = len(text), self._lexers, self.texts
        while pos < size:
            state = self.state
            if state in HOLDING:
                pos = self._scan_held(text, pos, size, plain)
                continue
            found = lexers[state][plain].search(text, pos)
            start = size if found is None else found.start()
            if start > pos:
                reached = texts[state](self, text, pos, start)
                if found is None or reached != start or self.state is not state:
                    pos = reached
                    continue
            pos = pos if found is None else self._marker(found, text, pos)

    def _scan_held(self, text: str, pos: int, size: int, plain: bool) -> int:
        """Take a few characters, or one marker; the position reached.

        What is held may turn out to be text after any character, so nothing
        is looked for far ahead: that would be quadratic.
        """
        stop = pos + 1
        if text[pos] == "<":
            found = self._lexers[self.state][plain].match(text, pos)
            if found is not None:
                return self._marker(found, text, pos)
        else:
            stop = min(size, pos + _HELD_STEP)
            marker = text.find("<", pos, stop)
            stop = stop if marker < 0 else marker
        return self._take(text, pos, stop)

    def _marker(self, found: re.Match[str], text: str, pos: int) -> int:
        """Hand on the marker at ``found``, or hold its beginning; the position reached."""
        state, start, end = self.state, found.start(), found.end()
        if text[start] == "t" and not self._is_addressed(text, start, pos):
            return self._take(text, start, end)
        if found.lastindex:
            return self.markers[state](self, found.group(), text, start, end)
        if state in HOLDING and self.gives_up(end - start, start):
            return start
        self._tail, self._tail_plain = text[start:], self._plain
        return end

    def _take(self, text: str, pos: int, end: int) -> int:
        return self.texts[self.state](self, text, pos, end)

    def _is_addressed(self, text: str, start: int, pos: int) -> bool:
        """Whether a ``to=`` stands where a header may begin: after whitespace, or first."""
        before = text[start - 1] if start > pos else self.message.last
        return not before or before in wire.WHITESPACE

    def _seam(self, text: str, size: int) -> int:
        """Join a held tail of ``size`` to text of other provenance: only a tag can span both."""
        found = self._lexers[self.state][True].match(text)
        if found is None or text[0] == "t":
            self._flush(text[:size])
            return size
        if not found.lastindex:
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
