"""Responses in the background: written whether somebody reads or not.

Rules: everything that a job says goes into its event log, and readers read the
log; so several may read, from any place, and a slow one holds up nobody. What a
crash left open is closed as failed at the next start.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..responses.faults import bad_value
from .keeping import record_of
from .pulse import Pulse
from .reply import TERMINAL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from .reply import Reply
    from .service import Service
    from .store import Record, Store

Event: TypeAlias = dict[str, Any]

PAGE: Final = 256
SECONDS: Final = 5.0
"""After which the log is looked at, whatever was told."""

ABANDONED: Final = {
    "code": "server_error",
    "message": "The server was restarted while this response was being written.",
}


class Job:
    """One reply in the background.

    ``response`` is the object as it is now; ``changed`` is set by the next event,
    and another takes its place.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.response: dict[str, Any] = {}
        self._pulse = Pulse(reply.service.settings.heartbeat)
        self.changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Put it into the store and begin; returns once it can be found. Raises ApiError (429)."""
        first = self._pulse.numbered(await self.reply.next() or [])
        self.reply.response = self.response = _queued(first[0]["response"])
        await self.reply.service.store.put(record_of(self.reply, is_open=True))
        await self._log(first)
        self._task = self.reply.service.spawn(self._write())

    async def cancel(self) -> None:
        """End it as cancelled; returns once that is stored."""
        self.reply.stop()
        await self.done()

    async def done(self) -> None:
        """Wait for its end."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _write(self) -> None:
        service, silence = self.reply.service, self.reply.service.settings.heartbeat_seconds
        try:
            while (batch := await self.reply.next(silence)) is not None:
                await self._log(self._pulse.numbered(batch) or self._pulse.beat())
        finally:
            service.jobs.pop((self.reply.tenant, self.reply.id), None)
            self._tell()

    async def _log(self, events: list[Event]) -> None:
        self.response = folded(self.response, events)
        await self.reply.service.store.append_events(self.reply.tenant, self.reply.id, events)
        self._tell()

    def _tell(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


def _queued(response: dict[str, Any]) -> dict[str, Any]:
    return {**deepcopy(response), "status": "queued"}


def folded(response: dict[str, Any], events: Iterable[Event]) -> dict[str, Any]:
    """``response`` after ``events``: its status, and the items that are done."""
    for event in events:
        if event["type"] in TERMINAL:
            return dict(event["response"])
        if event["type"] == "response.in_progress":
            response = {**response, "status": "in_progress"}
        elif event["type"] == "response.output_item.done":
            response = {**response, "output": [*response["output"], event["item"]]}
    return response


async def logged(service: Service, record: Record, after: int) -> AsyncGenerator[list[Event], None]:
    """The events of a background response after the number ``after``, up to its last.

    Raises ApiError (400) if it has no log, or none any more.
    """
    key = (record.tenant, record.id)
    if not record.body["log"]:
        raise bad_value("stream", "Only a response with background: true can be streamed again.")
    if key not in service.jobs and not await service.store.read_events(*key, -1, 1):
        raise bad_value("stream", "The events of this response are not kept any more.")
    while True:
        job = service.jobs.get(key)
        changed = None if job is None else job.changed
        events = await service.store.read_events(*key, after, PAGE)
        if events:
            after = events[-1]["sequence_number"]
            yield events
            if events[-1]["type"] in TERMINAL:
                return
        elif changed is None:
            return
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await changed.wait()


async def recover(store: Store) -> int:
    """Close what was left open; how many responses that were."""
    records = await store.unfinished()
    for record in records:
        await _close(store, record)
    return len(records)


async def _close(store: Store, record: Record) -> None:
    response, number = record.body["response"], -1
    while events := await store.read_events(record.tenant, record.id, number, PAGE):
        response = folded(response, events)
        number = events[-1]["sequence_number"]
    if response["status"] in ("queued", "in_progress"):
        response = {**response, "status": "failed", "error": ABANDONED}
        last = {"type": "response.failed", "sequence_number": number + 1, "response": response}
        await store.append_events(record.tenant, record.id, [last])
    await store.put(replace(record, open=False, body={**record.body, "response": response}))
