"""One response being written: the engine's steps in, events out.

Rules: a reply is driven to its end whether somebody reads it or not, and its
last event is always ``response.completed``, ``incomplete`` or ``failed``. It is
stored before that event is given out, so that a quick follow-up finds it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from ..responses.answer import new_builder, run_of
from ..responses.faults import ApiError
from ..responses.outcome import ENDS
from . import tracing
from .conversations import extend
from .deciding import may_decide
from .feed import Feed
from .inspector.live import LiveResponse
from .keeping import CONTINUED, record_of
from .mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine import Step
    from ..responses.ask import Ask
    from ..responses.outcome import Event
    from .inspector.live import LiveTurn
    from .service import Service
    from .slots import Place
    from .store import Store

ADDED: Final = "response.output_item.added"
MOST: Final = 64
"""Events that wait for the reader."""

DRAINED: Final = "The server is shutting down; please send the request again."

log = logging.getLogger("atem.server")


class Reply:
    """The answer to ``ask``, for ``tenant``; read by :meth:`next`, on the event loop.

    ``near`` keeps it too, whatever the client says about storing.
    """

    def __init__(self, service: Service, ask: Ask, tenant: str, near: Store | None = None) -> None:
        self.service = service
        self.ask = ask
        self.tenant = tenant
        self.kept = ask.store and service.settings.store != "off"
        self.over = False
        self.response: dict[str, Any] = {}
        self.started = time.monotonic()
        self.span: Any = None
        """Of OpenTelemetry, if spans are wanted."""
        self.first: float | None = None
        """When the first of the answer came."""
        self.builder = new_builder(
            ask,
            created_at=int(time.time()),
            blobs=service.blobs,
            arguments=service.settings.arguments,
            event_names=service.settings.event_names,
        )
        self._near = near
        self._run = run_of(
            ask,
            service.engine,
            self.builder,
            clock=lambda: int(time.time()),
            on_rejected=service.settings.on_rejected,
            blobs=service.blobs,
        )
        self._shown = LiveResponse(self)
        self._place: Place | None = None
        self._feed: Feed | None = None
        self._stopped = False
        self._end: ApiError | None = None
        self._mailbox = Mailbox(MOST)
        self._driver: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        """The response's."""
        return self.builder.id

    def begin(self) -> list[Event]:
        """Take a place to be written in, at once or later; what is told of that.

        Raises ApiError (429).
        """
        place = self._place = self.service.slots.enter(self.tenant)
        self.service.began(self)
        return self.builder.start(queued=True) if place.waits or self.ask.background else []

    async def next(self, silence: float | None = None) -> list[Event] | None:
        """The next events; none after ``silence`` seconds without any; None at the end.

        It begins unless it has. Whoever waits may be cancelled: nothing is lost.
        Raises ApiError before the first event.
        """
        if self._place is None:
            self._mailbox.add(self.begin())
        if self._driver is None:
            self._driver = self.service.spawn(self._drive())
        return await self._mailbox.take(silence)

    def stop(self, failure: ApiError | None = None) -> None:
        """End it soon: as cancelled, or as failed."""
        self._end = self._end or failure
        self._stopped = True
        if self._place is not None and self._place.waits:
            self._place.leave()
        if self._feed is not None:
            self._feed.close()
            self.service.spawn(asyncio.to_thread(self._feed.cut))

    async def finish(self) -> None:
        """Read it to its end, alone."""
        while await self.next() is not None:
            pass

    def leave(self) -> None:
        """Its reader is gone: stop it, or let it be finished (``on_disconnect``)."""
        self._mailbox.close()
        if not self.over and self.service.settings.on_disconnect == "abort":
            self.stop()

    async def _drive(self) -> None:
        """Write it to its end, as fast as it is read."""
        self.span = tracing.begun(self)
        try:
            await self._write()
        except Exception as error:
            self._mailbox.end(error)
            if self._mailbox.closed:
                raise
        finally:
            self._mailbox.end()

    async def _write(self) -> None:
        assert self._place is not None
        failure: Exception | None = None
        try:
            if await self._place.turn() and not self._stopped:
                failure = await self._generated()
            if not self.over:
                await self._tell(self._ended(failure))
        finally:
            self._place.leave()
            self.service.ended(self)

    async def _generated(self) -> Exception | None:
        """Have the engine write it, turn by turn; what went wrong outside of a turn."""
        try:
            await self.service.work(self._run.begin)
            await self._tell(self.builder.start())
            while self._run.steps is not None:
                await self._turn(self._run.steps)
        except Exception as error:  # noqa: BLE001 - told to the client, whatever it was
            return error
        return None

    async def _turn(self, steps: Iterator[Step]) -> None:
        """One turn of the model, and what follows from it."""
        service = self.service
        feed = self._feed = Feed(steps, service.settings.slow_reader_seconds, service.waker)
        if self._stopped:
            feed.close()
        thread = service.work(feed.run)
        try:
            error = await self._taken(feed)
            wanted = not feed.closed
        finally:
            feed.close()
        await self._tell(await service.work(self._followed, feed, error, wanted))
        await thread

    async def _taken(self, feed: Feed) -> Exception | None:
        """Make events of the steps, as long as they are wanted; what they broke off in."""
        run, shown = self._run, self._watched()
        checked = len(self.ask.tools) > 0
        try:
            while not run.enough and (steps := await feed.take()):
                for step in steps:
                    if shown is not None:
                        shown.add(step)
                    if checked and may_decide(step, self.service.tokenizer):
                        await self._tell(await self.service.work(run.feed, step))
                    else:
                        await self._tell(run.feed(step))
                    if run.enough or feed.closed:
                        break
        except Exception as error:  # noqa: BLE001 - told to the client, whatever it was
            return error
        finally:
            if shown is not None:
                shown.end()
        return None

    def _followed(self, feed: Feed, error: Exception | None, wanted: bool) -> list[Event]:
        """In a thread: what follows from a turn, or nothing if nobody wants it."""
        feed.cut()
        if wanted:
            return self._run.conclude(error)
        self._run.leave()
        return []

    def _watched(self) -> LiveTurn | None:
        """Where this turn is kept for who looks, if it is."""
        options = {
            "tools": self.builder.tools.toolset,
            "arguments": self.builder.arguments,
            "channel": self._run.ask.channel(self.service.engine.info),
        }
        return self.service.live.begin(self._shown, options, self.service.tokenizer)

    def _ended(self, failure: Exception | None) -> list[Event]:
        """The last events of what did not come to its own end.

        Raises ApiError for what was refused, as long as nothing was told.
        """
        if isinstance(failure, ApiError) and not self.builder.sequence:
            self.service.metrics.engine_error(failure.__cause__)
            raise failure
        error = failure or self._end
        started = self.builder.start()
        return started + (self.builder.fail(error) if error else self.builder.cancel())

    def _stores(self) -> list[Store]:
        """Where it is kept."""
        stores = [] if self._near is None else [self._near]
        return [*stores, self.service.store] if self.kept else stores

    async def _tell(self, events: list[Event]) -> None:
        """Hand ``events`` on, once what they say has been noted."""
        if self.first is None and any(e["type"] == ADDED for e in events):
            self.first = time.monotonic()
            self.service.metrics.first_output(self, self.first)
        if events and events[-1]["type"] in ENDS:
            self.over = True
            self.response = events[-1]["response"]
            self.service.answered(self)
            if not self.ask.background:  # a job stores it together with its events
                await self.converse()
                for store in self._stores():
                    stored = store.put(record_of(self, self.response))
                    await self.service.tried(stored, f"storing {self.id}")
        await self._mailbox.put(events)

    async def converse(self) -> None:
        """Add it to its conversation, if it came to a good end and that is still there."""
        if self.ask.conversation and self.response["status"] in CONTINUED:
            items = [*self.ask.items, *self.response["output"]]
            added = extend(self.service.store, self.tenant, self.ask.conversation, items)
            await self.service.tried(added, f"adding {self.id} to its conversation")
