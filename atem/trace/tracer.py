"""What each piece of a turn is to the parser: the trace that people look at.

Rules: the parser of :mod:`atem.parser.api` is fed piece by piece, and what it
answers is written down. A step is a piece, its events and where the parser
stands then; the last step has no text and is the end of the stream. Spans
count characters. Ids of calls are numbers, so that a turn has one trace.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..parser.api import Parser
from ..parser.events import CallEnd, CallRejected
from ..parser.fold import collect
from ..parser.values import to_json
from . import kinds
from .pieces import piece_record, require_few
from .records import event_record, turn_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..parser.events import Event
    from ..parser.fold import Turn
    from ..parser.options import Reason
    from .pieces import AnyPiece

Step: TypeAlias = dict[str, Any]

VERSION: Final = 1


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
            spans = kinds.parts(event, text[told : told + size], read)
            paint = [[kind, *span] for kind, span in spans]
            told += size
            yield {**event_record(event), "paint": paint, **_arguments(event)}
        if spanning:
            self._untold = [text[told:]]


def _arguments(event: Event) -> dict[str, str]:
    """The arguments of a call that has its verdict, as text: scripts round large numbers."""
    if isinstance(event, CallEnd):
        return {"arguments_json": event.call.arguments_json}
    if isinstance(event, CallRejected) and event.rejected and event.rejected.arguments is not None:
        return {"arguments_json": to_json(event.rejected.arguments)}
    return {}


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
