"""One turn of the model, from the request to its last event.

Rules: what can be refused is refused when it is made, before anything is
written. Its steps are pushed; whoever reads them from the engine closes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine import tokenizer_of
from ...parser.api import Parser
from ...parser.events import ContentDelta
from ...parser.fold import Collector
from .. import ids
from .held import Told
from .logprobs import Logprobs
from .meter import Meter
from .stopped import Stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...engine import Engine, Finish, Step
    from ...parser.events import Event
    from ...parser.fold import Turn
    from ..ask import Ask
    from ..builder import ResponseBuilder


class Writing:
    """A turn that ``engine`` writes for ``ask``, counted into the builder's usage.

    ``channel`` is the one that the prompt opens. See
    :class:`~atem.responses.run.OneTurn`. Raises ApiError, and what
    ``Engine.generate`` raises.
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
        tokenizer = tokenizer_of(engine)
        self._numbers = Logprobs(tokenizer) if ask.logprobs and tokenizer else None
        self._meter = Meter(builder.usage, tokenizer)
        self._collector = Collector()
        self._text: list[str] = []
        self._parser = Parser(
            tools=ask.tools.toolset,
            tokenizer=tokenizer,
            arguments=builder.arguments,
            channel=channel,
            new_id=lambda: builder.new_id(ids.CALL),
        )
        request = ask.engine_request(engine.info, room=room, channel=channel)
        self.steps = engine.generate(request)
        if tokenizer is not None:
            prompt = ask.prompt(engine.info, channel=channel)
            builder.usage.input += prompt.count(tokenizer)
        stops = () if request.stop else ask.stop
        self._stopping = Stopping(stops, tokenizer) if stops else None

    def feed(self, step: Step) -> Iterator[Told]:
        """What a step brings."""
        if self._stopping is not None:
            step = self._stopping.take(step)
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
        if step.finish is not None:
            self.finish = step.finish
            self._builder.stopped_by = step.stop

    def end(self) -> Iterator[Told]:
        """What is left, as no step follows."""
        # Whoever didn't say why it ended may have been cut.
        return self._tell(self._parser.close("stop" if self.finish == "stop" else "length"))

    def turn(self) -> Turn:
        """What was written so far."""
        return self._collector.turn()

    def count(self) -> None:
        """Count it, now that it has ended."""
        self._meter.end(self.turn(), "".join(self._text))

    def _tell(self, events: list[Event]) -> Iterator[Told]:
        for event in events:
            self._collector.add(event)
            numbers = self._numbers
            shown = numbers.of(event) if numbers and isinstance(event, ContentDelta) else []
            yield Told(event, shown)
