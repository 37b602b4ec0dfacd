"""One turn of the model, from the request to its last event.

Rules: what can be refused is refused when it is made, before anything is
written. Closing it closes the engine's iterator at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine import close, tokenizer_of
from ...parser.api import Parser
from ...parser.events import ContentDelta
from ...parser.fold import Collector
from .. import ids
from .held import Told
from .idle import IDLE
from .logprobs import Logprobs
from .meter import Meter
from .stopped import stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...engine import Engine, Finish, Step
    from ...parser.events import Event
    from ...parser.fold import Turn
    from ..ask import Ask
    from ..builder import ResponseBuilder


class Writing:
    """A turn that ``engine`` writes for ``ask``, counted into the builder's usage.

    ``channel`` is the one that the prompt opens. ``finish`` is how it ended,
    None as long as nobody said. Raises ApiError, and what ``Engine.generate``
    raises.
    """

    def __init__(
        self,
        ask: Ask,
        engine: Engine,
        builder: ResponseBuilder,
        *,
        channel: str | None = None,
        room: int | None = None,
    ) -> None:
        self.finish: Finish | None = None
        self._builder = builder
        self._tokenizer = tokenizer_of(engine)
        self._numbers = Logprobs(self._tokenizer) if ask.logprobs and self._tokenizer else None
        self._meter = Meter(builder.usage, self._tokenizer)
        self._collector = Collector()
        self._text: list[str] = []
        self._parser = Parser(
            tools=ask.tools.toolset,
            tokenizer=self._tokenizer,
            arguments=builder.arguments,
            channel=channel,
            new_id=lambda: builder.new_id(ids.CALL),
        )
        request = ask.engine_request(engine.info, room=room, channel=channel)
        steps: Any = engine.generate(request)
        self._steps = steps
        if self._tokenizer is not None:
            prompt = ask.prompt(engine.info, channel=channel)
            builder.usage.input += prompt.count(self._tokenizer)
        if ask.stop and not request.stop:
            self._steps = stopped(steps, ask.stop, self._tokenizer)
        self._engine_steps = steps

    def events(self) -> Iterator[Told | None]:
        """What it brings, event by event; None where the engine has nothing yet (IDLE)."""
        for step in self._steps:
            if step is IDLE:
                yield None
                continue
            yield from self._told(step)
            if step.finish is not None:
                self.finish = step.finish
                self._builder.stopped_by = step.stop
        # Whoever didn't say why it ended may have been cut.
        yield from self._tell(self._parser.close("stop" if self.finish == "stop" else "length"))

    def turn(self) -> Turn:
        """What was written so far."""
        return self._collector.turn()

    def close(self) -> None:
        """Stop the engine, and count."""
        for iterator in (self._steps, self._engine_steps):
            close(iterator)
        self._meter.end(self.turn(), "".join(self._text))
        self._text.clear()

    def _told(self, step: Step) -> Iterator[Told]:
        self._meter.step(step)
        if not step.ids and isinstance(step.piece, str):
            self._text.append(step.piece)
        if self._numbers is not None:
            self._numbers.step(step)
        # Part by part: to look whether something is a step costs more than to parse it.
        parts = step.ids if step.pieces is None else step.pieces
        events = [event for part in parts for event in self._parser.feed(part)]
        self._meter.saw(events)
        yield from self._tell(events)

    def _tell(self, events: list[Event]) -> Iterator[Told]:
        for event in events:
            self._collector.add(event)
            numbers = self._numbers
            shown = numbers.of(event) if numbers and isinstance(event, ContentDelta) else []
            yield Told(event, shown)
