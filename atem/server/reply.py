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

from ..responses.answer import answer, new_builder
from ..responses.faults import ApiError
from ..responses.outcome import ENDS
from .conversations import extend
from .feed import Feed
from .interrupt import Interrupt, Interruptible
from .keeping import CONTINUED, record_of
from .mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from ..responses.ask import Ask
    from ..responses.outcome import Event
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
            event_names=service.settings.event_names,
        )
        self._near = near
        self._engine = Interruptible(service.engine)
        self._place: Place | None = None
        self._feed: Feed | None = None
        self._failure: Exception | None = None
        self._end: ApiError | None = None
        self._mailbox = Mailbox(MOST)
        self._driver: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        """The response's."""
        return self.builder.id

    async def next(self, silence: float | None = None) -> list[Event] | None:
        """The next events; none after ``silence`` seconds without any; None at the end.

        Whoever waits may be cancelled: nothing is lost. Raises ApiError (429)
        before the first event.
        """
        if self._driver is None:
            self._driver = self.service.spawn(self._drive())
        return await self._mailbox.take(silence)

    def stop(self, failure: ApiError | None = None) -> None:
        """End it soon: as cancelled, or as failed."""
        self._end = self._end or failure
        if self._place is not None and self._place.waits:
            self._place.leave()
        if self._feed is not None:
            self._feed.stop()
        self._engine.stop()
        self.service.spawn(asyncio.to_thread(self._engine.cut))

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
        try:
            async for events in self._events():
                await self._mailbox.put(events)
        except Exception as error:
            self._mailbox.end(error)
            if self._mailbox.closed:
                raise
        finally:
            self._mailbox.end()

    async def _events(self) -> AsyncGenerator[list[Event], None]:
        place = self._place = self.service.slots.enter(self.tenant)
        self.service.began(self)
        try:
            if place.waits or self.ask.background:
                yield self.builder.start(queued=True)
                await self._mailbox.wanted()  # a job is in the store by then
            if await place.turn():
                async for batch in self._generated():
                    yield await self._seen(batch)
            if not self.over:
                yield await self._seen(self._ended())
        finally:
            place.leave()
            self.service.ended(self)

    async def _generated(self) -> AsyncGenerator[list[Event], None]:
        service = self.service
        feed = Feed(self._engine, service.submit, service.settings.slow_reader_seconds)
        self._feed = feed
        try:
            batches = await service.work(self._answer, feed)
            batch = next(batches, None)  # what is told before there is a step
            while batch is not None:
                if batch:
                    yield batch
                batch = await self._batch(feed, batches)
        except Interrupt:
            pass
        except Exception as error:  # noqa: BLE001 - told to the client, whatever it was
            self._failure = error
        await feed.ended()

    async def _batch(
        self, feed: Feed, batches: Generator[list[Event], None, None]
    ) -> list[Event] | None:
        """The next events, which may be none; None at the end."""
        if not feed.flows:
            return await self.service.work(_next, batches)
        await feed.wait()
        return next(batches, None)

    def _answer(self, feed: Feed) -> Generator[list[Event], None, None]:
        return answer(
            self.ask,
            self.service.live.watched(feed, self),
            self.builder,
            clock=lambda: int(time.time()),
            on_rejected=self.service.settings.on_rejected,
            blobs=self.service.blobs,
        )

    def _ended(self) -> list[Event]:
        """The last events of what did not come to its own end.

        Raises ApiError for what was refused, as long as nothing was told.
        """
        error = self._failure or self._end
        if isinstance(self._failure, ApiError) and not self.builder.sequence:
            self.service.metrics.engine_error(self._failure.__cause__)
            raise self._failure
        started = self.builder.start()
        return started + (self.builder.fail(error) if error else self.builder.cancel())

    def _stores(self) -> list[Store]:
        """Where it is kept."""
        stores = [] if self._near is None else [self._near]
        return [*stores, self.service.store] if self.kept else stores

    async def _seen(self, events: list[Event]) -> list[Event]:
        """``events``, once what they say has been noted."""
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
        return events

    async def converse(self) -> None:
        """Add it to its conversation, if it came to a good end and that is still there."""
        if self.ask.conversation and self.response["status"] in CONTINUED:
            items = [*self.ask.items, *self.response["output"]]
            added = extend(self.service.store, self.tenant, self.ask.conversation, items)
            await self.service.tried(added, f"adding {self.id} to its conversation")


def _next(batches: Generator[list[Event], None, None]) -> list[Event] | None:
    return next(batches, None)
