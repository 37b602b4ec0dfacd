"""What each piece of a turn is to the parser: the trace that people look at.

Rules: the parser of :mod:`atem.parser.api` is fed piece by piece, and what it
answers is written down. A step is a piece, its events and where the parser
stands then; the last step has no text and is the end of the stream. Spans
count characters. Ids of calls are numbers, so that a turn has one trace.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .. import wire
from ..parser.api import Parser
from ..parser.events import ArgumentsDelta, CallEnd, CallRejected, CallStart
from ..parser.fold import collect
from ..parser.values import to_json
from . import kinds
from .pieces import piece_record, require_few
from .records import event_record, turn_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..messages import Span
    from ..parser.events import Event
    from ..parser.fold import Turn
    from ..parser.options import Reason
    from .pieces import AnyPiece

Step: TypeAlias = dict[str, Any]

VERSION: Final = 1

FORMING: Final = "forming"
"""Text of a call that is not decided yet."""

NAMES: Final = {
    kinds.FRAMING: "framing",
    kinds.REASONING: "reasoning",
    kinds.ANSWER: "answer",
    kinds.CALL: "call",
    kinds.REJECTED: "rejected",
    kinds.DISCARDED: "discarded",
    kinds.LATE_REASONING: "reasoning late",
    kinds.LATE_ANSWER: "answer late",
}


class Tracer:
    """The trace of one turn as it comes. ``options`` are :class:`~atem.parser.api.Parser`'s."""

    def __init__(self, **options: Any) -> None:
        numbers = count()
        self._parser = Parser(**{"new_id": lambda: f"call_{next(numbers)}", **options})
        self._events: list[Event] = []
        self._untold: list[str] = []

    @property
    def turn(self) -> Turn:
        """The turn so far."""
        return collect(self._events)

    def feed(self, piece: AnyPiece) -> Step:
        """The step of the next piece."""
        record = piece_record(piece)
        self._untold.append(record["text"])
        return self._step(record, self._parser.feed(piece))

    def close(self, reason: Reason = "stop") -> Step:
        """The last step."""
        return self._step({"text": "", "end": reason}, self._parser.close(reason))

    def _step(self, record: dict[str, Any], events: list[Event]) -> Step:
        self._events += events
        standing = self._parser.standing
        return {
            **record,
            "state": standing.state,
            "place": standing.place,
            "to": standing.recipient,
            "told": standing.told,
            "read": standing.read,
            # As if its characters had come one by one, the first of them now.
            "events": list(self._records(events, standing.read - len(record["text"]) + 1)),
        }

    def _records(self, events: list[Event], read: int) -> Iterator[dict[str, Any]]:
        """The events as JSON, with the kinds of their text."""
        told = 0
        spanning = any(event.start < event.end for event in events)
        text = "".join(self._untold) if spanning else ""
        for event in events:
            size = event.end - event.start
            paint = list(_paint(event, text[told : told + size], read))
            told += size
            yield {**event_record(event), "paint": paint, **_arguments(event)}
        if spanning:
            self._untold = [text[told:]]


def _paint(event: Event, text: str, read: int) -> Iterator[list[Any]]:
    for kind, (start, end) in kinds.parts(event, text, read):
        name = NAMES[kind]
        if kind == kinds.DISCARDED:
            if isinstance(event, CallStart | ArgumentsDelta):
                name = FORMING
            elif not text.strip(wire.WHITESPACE):
                name = NAMES[kinds.FRAMING]
        yield [name, start, end]
    verdict = _verdict(event)
    if verdict is not None:
        name, (start, end) = verdict
        yield [name, start, end]


def _arguments(event: Event) -> dict[str, str]:
    """The arguments of a call that has its verdict, as text: scripts round large numbers."""
    if isinstance(event, CallEnd):
        return {"arguments_json": event.call.arguments_json}
    if isinstance(event, CallRejected) and event.rejected and event.rejected.arguments is not None:
        return {"arguments_json": to_json(event.rejected.arguments)}
    return {}


def _verdict(event: Event) -> tuple[str, Span] | None:
    if isinstance(event, CallEnd):
        return NAMES[kinds.CALL], event.call.span
    if isinstance(event, CallRejected) and event.rejected is not None:
        return NAMES[kinds.REJECTED], event.rejected.span
    return None


def trace(pieces: Iterable[AnyPiece], reason: Reason = "stop", **options: Any) -> dict[str, Any]:
    """The whole trace of a turn, ready for JSON.

    Raises what :class:`~atem.parser.api.Parser` raises for ``options``, and
    OptionError for a turn that is too long to look at.
    """
    given = list(pieces)
    require_few(given)
    tracer = Tracer(**options)
    steps = [tracer.feed(piece) for piece in given]
    steps.append(tracer.close(reason))
    return {"version": VERSION, "steps": steps, "turn": turn_record(tracer.turn)}
