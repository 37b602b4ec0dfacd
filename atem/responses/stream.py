"""A response as one iterable of events: for whoever serves it.

Rules: the whole chain behind one name, nothing of its own. ``of`` has an engine
write the response; ``of_events`` is given the parser's events of a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..engine import tokenizer_of
from ..errors import EngineError
from ..parser.events import TurnEnd
from ..parser.fold import Collector
from .answer import new_builder, run_of
from .run import Run
from .running.held import Told
from .truncation import truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..engine import Engine, Finish
    from ..parser.events import Event
    from ..parser.fold import Turn
    from .ask import Ask
    from .blob import Blobs
    from .run import OnRejected

ANOTHER: Final = (
    "The response needs another turn of the model, and has the events of one alone "
    "(ResponseStream.of with an engine goes on)."
)


class ResponseStream:
    """The events of one response, in order, each a dict ready for ``json.dumps``; iterated once.

    ``ask`` is the request as it is answered, ``notes`` what was asked for and not
    done; ``builder`` counts the usage. Raises ApiError for all that can be refused.
    """

    def __init__(self, run: Run[Any], notes: tuple[str, ...]) -> None:
        self.ask = run.ask
        self.notes = notes
        self.builder = run.builder
        run.begin()
        self._batches = run.events()

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
        """The response that ``engine`` writes; see :class:`~atem.responses.run.Run`.

        ``clock`` gives seconds since 1970. ``blobs`` seals reasoning and summaries;
        ``options`` are those of :func:`~atem.responses.answer.new_builder`. What
        doesn't fit the engine's context is refused or left out, as
        ``ask.truncation`` says.
        """
        shorter = _fitting(ask, engine)
        run = run_of(
            shorter,
            engine,
            new_builder(shorter, created_at=int(clock()), blobs=blobs, **options),
            clock=lambda: int(clock()),
            retries=retries,
            on_rejected=on_rejected,
            blobs=blobs,
        )
        counts = tokenizer_of(engine) is not None
        return cls(run, (*ask.notes, *ask.lacking(engine.info, counts=counts)))

    @classmethod
    def of_events(
        cls,
        events: Iterable[Event],
        ask: Ask,
        *,
        clock: Callable[[], float],
        blobs: Blobs | None = None,
        **options: Any,
    ) -> ResponseStream:
        """The response to one whole turn, whose events the parser gives; options as above.

        What ``ask`` must have is checked as far as one turn can show it: a turn that
        isn't what was asked ends in ``response.failed``.
        """
        builder = new_builder(ask, created_at=int(clock()), blobs=blobs, **options)
        return cls(Run(ask, _once(events), builder, lambda: int(clock()), blobs=blobs), ask.notes)

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
    """A turn whose events were given; see :class:`~atem.responses.run.OneTurn`."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.steps = iter(events)
        self.finish: Finish | None = None
        self._collector = Collector()

    def feed(self, step: Event) -> list[Told]:
        self._collector.add(step)
        if isinstance(step, TurnEnd):
            self.finish = "stop" if step.complete else "length"
        return [Told(step, [])]

    def end(self) -> list[Told]:
        return []

    def turn(self) -> Turn:
        return self._collector.turn()

    def count(self) -> None:
        """Whoever gave the events counts."""


def _once(events: Iterable[Event]) -> Callable[[Ask, int | None], _Given]:
    turns = [_Given(events)]

    def write(ask: Ask, room: int | None) -> _Given:
        if not turns:
            raise EngineError(ANOTHER)
        return turns.pop()

    return write
