"""A response as one iterable of events: for whoever serves it.

Rules: the whole chain behind one name, nothing of its own. ``of`` has an engine
write the response; without one, the parser's events of a turn are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..engine import Finish, close, tokenizer_of
from ..errors import EngineError
from ..parser.events import TurnEnd
from ..parser.fold import collect
from .answer import answer, new_builder, turn_by_turn
from .running.held import Told
from .truncation import truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from ..engine import Engine
    from ..parser.events import Event
    from ..parser.fold import Turn
    from .answer import OnRejected
    from .ask import Ask
    from .blob import Blobs

ANOTHER: Final = (
    "The response needs another turn of the model, and has the events of one alone "
    "(ResponseStream.of with an engine goes on)."
)


class ResponseStream:
    """The events of one response, in order, each a dict ready for ``json.dumps``; iterated once.

    ``events`` are the parser's, of one whole turn. ``clock`` gives seconds since
    1970. ``blobs`` seals reasoning and summaries; ``options`` are those of
    :func:`~atem.responses.answer.new_builder`. What ``ask`` must have is checked
    as far as one turn can show it: a turn that isn't what was asked ends in
    ``response.failed``.

    ``ask`` is the request as it is answered, ``notes`` what was asked for and not
    done; ``builder`` counts the usage.
    """

    def __init__(
        self,
        events: Iterable[Event],
        ask: Ask,
        *,
        clock: Callable[[], float],
        blobs: Blobs | None = None,
        **options: Any,
    ) -> None:
        self.ask = ask
        self.notes: tuple[str, ...] = ask.notes
        self.builder = new_builder(ask, created_at=int(clock()), blobs=blobs, **options)
        self._batches = turn_by_turn(
            ask, _once(events), self.builder, lambda: int(clock()), blobs=blobs
        )

    @classmethod
    def of(
        cls,
        ask: Ask,
        engine: Engine,
        *,
        clock: Callable[[], float],
        blobs: Blobs | None = None,
        on_rejected: OnRejected = "message",
        retries: int = 1,
        **options: Any,
    ) -> ResponseStream:
        """The response that ``engine`` writes; see :func:`~atem.responses.answer.answer`.

        What doesn't fit its context is refused or left out, as ``ask.truncation``
        says. Raises ApiError for all that can be refused.
        """
        shorter = _fitting(ask, engine)
        made = cls((), shorter, clock=clock, blobs=blobs, **options)
        made.notes = (*ask.notes, *ask.lacking(engine.info))
        made._batches = answer(
            shorter,
            engine,
            made.builder,
            clock=lambda: int(clock()),
            blobs=blobs,
            on_rejected=on_rejected,
            retries=retries,
        )
        return made

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches:
            yield from batch

    @property
    def response(self) -> dict[str, Any]:
        """The response object as it is now."""
        return self.builder.response

    def whole(self) -> dict[str, Any]:
        """Read it to its end; the finished response object."""
        for _ in self._batches:
            pass
        return self.response

    def close(self) -> None:
        """Stop: the engine stops at once, and no more events come."""
        self._batches.close()


def _fitting(ask: Ask, engine: Engine) -> Ask:
    tokenizer = tokenizer_of(engine)
    if tokenizer is None:
        return ask
    return truncate(ask, tokenizer, engine.info.context, engine.info)


class _Given:
    """A turn whose events were given; see :class:`~atem.responses.answer.OneTurn`."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.finish: Finish | None = None
        self._events = self._read(iter(events))
        self._seen: list[Event] = []

    def events(self) -> Iterator[Told]:
        return self._events

    def turn(self) -> Turn:
        return collect(self._seen)

    def close(self) -> None:
        self._events.close()

    def _read(self, events: Iterator[Event]) -> Generator[Told, None, None]:
        try:
            for event in events:
                self._seen.append(event)
                if isinstance(event, TurnEnd):
                    self.finish = "stop" if event.complete else "length"
                yield Told(event, [])
        finally:
            close(events)


def _once(events: Iterable[Event]) -> Callable[[Ask, int | None], _Given]:
    turns = [_Given(events)]

    def write(ask: Ask, room: int | None) -> _Given:
        if not turns:
            raise EngineError(ANOTHER)
        return turns.pop()

    return write
