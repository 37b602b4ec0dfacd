"""What each character of a turn is, in rows for a screen.

Rules: :mod:`atem.trace.kinds` says what it is. Every character of the input is
in exactly one row, in order; a line break is shown by a sign, and the row after
it has no label. What atem says about the text stands in rows of its own, behind an arrow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .. import wire
from ..parser.events import CallEnd, CallRejected, Event, MessageStart, Problem, TurnEnd
from ..tools.excerpt import COUNTED, shorten
from ..trace.kinds import (
    ANSWER,
    CALL,
    DISCARDED,
    FRAMING,
    LATE_ANSWER,
    LATE_REASONING,
    REASONING,
    REJECTED,
    parts,
)
from .screen import Row, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..messages import RejectedCall, Span, ToolCall
    from ..parser.fold import Turn


class Seen(NamedTuple):
    """An event, and how many characters had been read when it came."""

    event: Event
    read: int


class Kind(NamedTuple):
    """What a run of text is: its label and its rich style."""

    label: str
    style: str


KINDS: Final[Mapping[int, Kind]] = {
    FRAMING: Kind("framing", "dim"),
    REASONING: Kind("reasoning", "dim italic"),
    ANSWER: Kind("answer", "none"),
    CALL: Kind("call", "green"),
    REJECTED: Kind("rejected", "red"),
    DISCARDED: Kind("discarded", "strike"),
    LATE_REASONING: Kind("reasoning, held", "dim italic underline"),
    LATE_ANSWER: Kind("answer, held", "underline"),
}

NOTE: Final = "  ->"
BREAK: Final = "\N{RETURN SYMBOL}"
LONGEST_NOTE: Final = 200

_RUN: Final = re.compile(rb"(.)\1*", re.DOTALL)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def rows(text: str, seen: Iterable[Seen], turn: Turn) -> Iterator[Row]:
    """The rows of ``text``, whose events were ``seen`` and fold to ``turn``."""
    events = list(seen)
    paint = painted(text, events, turn)
    done = 0
    for event, _ in events:
        note = _note(event)
        if note is not None:
            yield from _runs(text, paint, done, event.end)
            yield note
            done = event.end
    yield from _runs(text, paint, done, len(text))


def painted(text: str, seen: Iterable[Seen], turn: Turn) -> bytearray:
    """The kind of each character. Calls have the last word: their spans know the verdict."""
    paint = bytearray(len(text))
    for event, read in seen:
        for kind, span in parts(event, text[event.start : event.end], read):
            _fill(paint, kind, span)
    for call in turn.calls:
        _fill(paint, CALL, call.span)
    for rejected in turn.rejected:
        _fill(paint, REJECTED, rejected.span)
    for run in list(_RUN.finditer(paint)):
        if run[0][0] == DISCARDED and not text[slice(*run.span())].strip(wire.WHITESPACE):
            _fill(paint, FRAMING, run.span())  # whitespace between tags
    return paint


def _fill(paint: bytearray, kind: int, span: Span) -> None:
    start, end = span
    paint[start:end] = bytes((kind,)) * (end - start)


def _runs(text: str, paint: bytearray, start: int, end: int) -> Iterator[Row]:
    for run in _RUN.finditer(paint, start, end):
        label, style = KINDS[run[0][0]]
        for line in _LINE.findall(text, run.start(), run.end()):
            yield Row(label, line.replace("\n", BREAK), style)
            label = ""


def _note(event: Event) -> Row | None:
    """What atem says about an event, None if it speaks for itself."""
    say = _NOTES.get(type(event))
    said = say and say(event)
    if not said:
        return None
    text, style = said
    return Row(NOTE, shorten(one_line(text), LONGEST_NOTE, gap=COUNTED), style)


def _message_note(event: MessageStart) -> tuple[str, str]:
    if event.recipient is None:
        return "no channel named: an answer", "bold"
    return f"channel {event.recipient}", "bold"


def _call_note(event: CallEnd) -> tuple[str, str]:
    call = event.call
    return f"call {call.wire_name} {call.arguments_json}{_errors(call)}", "bold green"


def _rejected_note(event: CallRejected) -> tuple[str, str] | None:
    rejected = event.rejected
    if rejected is None:
        return None
    near = f"; near: {', '.join(rejected.suggestions)}" if rejected.suggestions else ""
    return (
        f"rejected {rejected.raw_name}: {rejected.reason}{near}{_errors(rejected)}",
        "bold red",
    )


def _errors(call: ToolCall | RejectedCall) -> str:
    return "".join(f"; {error}" for error in call.errors)


def _problem_note(event: Problem) -> tuple[str, str]:
    return f"{event.code}: {event.message}", "yellow"


def _end_note(event: TurnEnd) -> tuple[str, str]:
    state = "complete" if event.complete else "incomplete"
    return f"turn {state}, finish reason {event.finish_reason}", "bold"


_NOTES: Final[dict[type[Event], Callable[[Any], tuple[str, str] | None]]] = {
    MessageStart: _message_note,
    CallEnd: _call_note,
    CallRejected: _rejected_note,
    Problem: _problem_note,
    TurnEnd: _end_note,
}
