"""The parser cut in two, for servers that keep a reasoning and a tool parser.

Rules: the first stage decides where messages end, takes reasoning out and
passes the rest on as text in which every message is framed, so that the second
(``parse_stream(..., framed=True)``) can tell a real channel from a quoted one.
Both together equal the one machine in reasoning, content, calls, rejected
calls and completeness.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .. import wire
from .context import Context
from .events import (
    ContentDelta,
    Event,
    MessageEnd,
    MessageStart,
    Problem,
    ReasoningDelta,
    TurnEnd,
)
from .handover import Handover, header
from .intake import Intake
from .machine import Machine
from .options import Options, Reason
from .states import Place, Signal
from .text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .tool_body import Candidate
    from .verdict import Ending

_SPLIT_OPTIONS = frozenset(("names", "profile", "channel", "max_header", "max_call_chars"))


class _Body:
    """A settled tool body as it goes to the second stage."""

    __slots__ = ("note", "text")

    def __init__(self, text: str, note: Handover | None) -> None:
        self.text = text
        self.note = note


class _Splitter(Machine):
    """The machine, remembering the text of the tool bodies that it settles."""

    def __init__(self, context: Context) -> None:
        self.bodies: deque[_Body] = deque()
        super().__init__(context)

    def is_tool(self, recipient: str | None) -> bool:
        """Whether messages to ``recipient`` hold calls."""
        return self._signal_of(recipient) is Signal.TOOL_HEADER

    def _settle(self, candidate: Candidate, ending: Ending) -> None:
        tool = self._body
        ended_at_first = tool.undecided is candidate
        trailing = candidate.chosen is not None and candidate.chosen.place is Place.TRAIL
        super()._settle(candidate, ending)
        note = Handover(
            0 if ended_at_first else tool.refused,
            ending.barred or tool.too_long or not self.context.trusted,
            tool.recovered and (trailing or ending.in_tag or ending.cut),
            ending.cut and candidate.terminator is not None,
        )
        plain = note == Handover() and not ended_at_first
        self.bodies.append(
            _Body(tool.rope.slice(tool.start, candidate.end), None if plain else note)
        )


class _FirstStage:
    """Turns the machine's events into reasoning and text."""

    def __init__(self, machine: _Splitter, *, framed: bool) -> None:
        self._machine = machine
        self._framed = framed
        self._start: MessageStart | None = None  # a message whose header is not passed on yet
        self._open = False  # a message was passed on and lacks its terminator
        self._behind = False  # something that is not passed on follows the last message
        self._end = 0  # where the last message ended

    def read(self, events: Iterable[Event]) -> Iterator[ReasoningDelta | Text]:
        """What ``events`` are to the second stage."""
        for event in events:
            if isinstance(event, ReasoningDelta):
                self._start = None
                yield event
            elif not self._framed:
                if isinstance(event, ContentDelta):
                    yield Text(event.text)
            else:
                yield from self._frame(event)

    def _frame(self, event: Event) -> Iterator[Text]:
        if isinstance(event, MessageStart):
            if self._open:
                yield Text(wire.EOM, framing=True)
            self._open, self._start, self._behind = False, event, True
        elif isinstance(event, ContentDelta):
            yield from self._header(None)
            yield Text(event.text)
        elif isinstance(event, MessageEnd):
            yield from self._message_end(event)
        elif isinstance(event, TurnEnd):
            yield from self._turn_end(event)
        elif isinstance(event, Problem) and event.code == "bad_header":
            self._behind = True

    def _header(self, note: Handover | None) -> Iterator[Text]:
        start, self._start = self._start, None
        if start is not None:
            to = start.recipient
            if to is None and self._machine.options.profile == "spark":
                to = wire.USER  # a header without recipient would be reasoning there
            yield Text(header(to) if note is None or to is None else note.header(to), framing=True)
            self._behind = False
            self._open = True

    def _message_end(self, event: MessageEnd) -> Iterator[Text]:
        start = self._start
        if start is not None and self._machine.is_tool(start.recipient):
            body = self._machine.bodies.popleft()
            yield from self._header(body.note)
            yield Text(body.text)
        elif start is not None and start.recipient != wire.SELF:
            yield from self._header(None)
        self._start, self._end = None, event.end
        if self._open and event.terminator is not None:
            self._open = False
            yield Text(event.terminator, framing=True)

    def _turn_end(self, event: TurnEnd) -> Iterator[Text]:
        """A header that the stream cut, or one in place of what follows the last message."""
        cut, followed = self._machine.header_cut, self._end < event.end
        if self._open and (followed or cut):
            yield Text(wire.EOM, framing=True)
        behind = self._behind or (followed and self._open) or self._machine.discarding
        if cut or (behind and not event.complete):
            yield Text(wire.START, framing=True)


def split_channels(
    tokens: Iterable[object],
    *,
    tools: object = None,
    tool_parsing: bool = True,
    reason: Reason | Callable[[], Reason] = "stop",
    tokenizer: object | None = None,
    **options: Any,
) -> Iterator[ReasoningDelta | Text]:
    """The first stage alone: reasoning as ``ReasoningDelta``, everything else as ``Text``.

    With ``tool_parsing`` answers and tool messages keep a full header and
    their terminator, for ``parse_stream(..., framed=True)`` with the same
    ``tools`` and ``reason``; without it answers come out bare and tool
    messages not at all. ``options`` may hold ``names``, ``profile``,
    ``channel``, ``max_header`` and ``max_call_chars``; another raises
    TypeError. A second stage that is fed the ``Text`` objects themselves takes
    every boundary from them; one that is fed their characters, as a server
    would that keeps plain text in between, reads them by wire_format 5, which
    can't know what tokens of known provenance had settled here.
    """
    unknown = options.keys() - _SPLIT_OPTIONS
    if unknown:
        raise TypeError(f"split_channels() got an unexpected option {min(unknown)!r}")
    chosen = {**options, "tools": tools, "arguments": "whole", "validate": "off"}
    machine = _Splitter(Context(Options.of(chosen)))
    stage = _FirstStage(machine, framed=tool_parsing)
    return _split(machine, Intake(machine, tokenizer), stage, tokens, reason)


def _split(
    machine: _Splitter,
    intake: Intake,
    stage: _FirstStage,
    tokens: Iterable[object],
    reason: Reason | Callable[[], Reason],
) -> Iterator[ReasoningDelta | Text]:
    for token in tokens:
        intake.feed(token)
        yield from stage.read(machine.out.take())
    machine.end(cut=intake.close(reason))
    yield from stage.read(machine.out.take())
