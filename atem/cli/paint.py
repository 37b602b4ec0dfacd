"""What each character of a turn is, in rows for a screen.

Rules: :mod:`atem.trace.kinds` says what it is. Every character of the input is
in exactly one row, in order; a line break is shown by a sign, and the row after
it has no label. What atem says about the text stands in rows of its own, behind an arrow.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .. import wire
from ..parser.events import CallEnd, CallRejected, Event, MessageStart, Problem, TurnEnd
from ..tools.excerpt import COUNTED, shorten
from ..trace import kinds
from .screen import Row, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..messages import RejectedCall, ToolCall


class Seen(NamedTuple):
    """An event, and how many characters had been read when it came."""

    event: Event
    read: int


class Kind(NamedTuple):
    """What a run of text is: its label and its rich style."""

    label: str
    style: str


FRAMING: Final = Kind("framing", "dim")
DISCARDED: Final = Kind("discarded", "strike")

KINDS: Final[Mapping[str, Kind]] = {
    kinds.FRAMING: FRAMING,
    kinds.REASONING: Kind("reasoning", "dim italic"),
    kinds.ANSWER: Kind("answer", "none"),
    kinds.CALL: Kind("call", "green"),
    kinds.REJECTED: Kind("rejected", "red"),
    kinds.DISCARDED: DISCARDED,
    kinds.FORMING: DISCARDED,  # what is still that at the end was never decided
    kinds.LATE_REASONING: Kind("reasoning, held", "dim italic underline"),
    kinds.LATE_ANSWER: Kind("answer, held", "underline"),
}

NOTE: Final = "  ->"
BREAK: Final = "\N{RETURN SYMBOL}"
LONGEST_NOTE: Final = 200

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def rows(text: str, seen: Iterable[Seen]) -> Iterator[Row]:
    """The rows of ``text``, whose events were ``seen``."""
    events = list(seen)
    paint = painted(text, events)
    done = 0
    for event, _ in events:
        note = _note(event)
        if note is not None:
            yield from _rows(text, paint, done, event.end)
            yield note
            done = event.end
    yield from _rows(text, paint, done, len(text))


def painted(text: str, seen: Iterable[Seen]) -> list[Kind]:
    """The kind of each character; whitespace between tags is framing."""
    paint = [DISCARDED] * len(text)
    for event, read in seen:
        for kind, (start, end) in kinds.parts(event, text[event.start : event.end], read):
            paint[start:end] = [KINDS[kind]] * (end - start)
    for run, start, end in list(_runs(paint, 0, len(text))):
        if run is DISCARDED and not text[start:end].strip(wire.WHITESPACE):
            paint[start:end] = [FRAMING] * (end - start)
    return paint


def _runs(paint: list[Kind], start: int, end: int) -> Iterator[tuple[Kind, int, int]]:
    for kind, run in groupby(paint[start:end]):
        done, start = start, start + sum(1 for _ in run)
        yield kind, done, start


def _rows(text: str, paint: list[Kind], start: int, end: int) -> Iterator[Row]:
    for kind, *run in _runs(paint, start, end):
        label = kind.label
        for line in _LINE.findall(text, *run):
            yield Row(label, line.replace("\n", BREAK), kind.style)
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
