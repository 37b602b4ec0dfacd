"""Responses in the background: written whether somebody reads or not.

Rules: everything that a job says goes into its event log, and readers read the
log; so several may read, from any place and on any server, and a slow one holds
up nobody. The stored record is changed in the same step as the log. A job
writes only what its server holds: if another has taken it over, or it was
deleted, it ends without another word. Source: responses.md 1.10, 5.
"""

from __future__ import annotations

import asyncio
import logging
import time
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..responses.outcome import ENDS
from .keeping import record_of
from .pulse import Pulse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ..responses.outcome import Event
    from .reply import Reply
    from .store import Record

T = TypeVar("T")

RETRY_SECONDS: Final = 0.2

log = logging.getLogger("atem.server")


class Job:
    """One reply in the background; ``response`` is the object as it is stored."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.service = reply.service
        self.key = (reply.tenant, reply.id)
        self.response: dict[str, Any] = {}
        self._version = 0
        self._held = False
        self._pulse = Pulse(reply.service.settings.heartbeat)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Put it into the store and begin; returns once it can be found.

        Raises ApiError (429), and what the store raises.
        """
        first = self._pulse.numbered(self.reply.begin())
        try:
            self._held = await self._put(_queued(first[0]["response"]), first)
        except BaseException:
            self.reply.stop()
            self.service.spawn(self.reply.finish())
            raise
        self.service.jobs[self.key] = self
        self._task = self.service.spawn(self._write())

    async def cancel(self) -> None:
        """End it as cancelled; returns once that is stored."""
        self.reply.stop()
        await self.done()

    async def done(self) -> None:
        """Wait for its end."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def lose(self) -> None:
        """Its record is not this server's any more: end it, and write nothing."""
        self._held = False
        if not self.reply.over:
            log.warning("response %s was deleted, or is taken over by another server", self.key[1])
            self.reply.stop()

    async def _write(self) -> None:
        silence = self.service.settings.heartbeat_seconds
        try:
            while (batch := await self.reply.next(silence)) is not None:
                await self._log(self._pulse.numbered(batch) or self._pulse.beat())
        finally:
            self.service.jobs.pop(self.key, None)

    async def _log(self, events: list[Event]) -> None:
        if not events or not self._held:
            return
        held = False
        try:
            held = await self._stored(events)
        except Exception as error:  # noqa: BLE001 - a store that is away has many types
            self.service.report(error, f"storing {self.key[1]}")
        if not held:
            self.lose()

    async def _stored(self, events: list[Event]) -> bool:
        response = folded(self.response, events)
        if _is_last(events[-1]):
            return await self._end(response, events)
        if response != self.response:
            return await self._patiently(lambda: self._put(response, events))
        store, owner = self.service.store, self.service.owner
        return await self._patiently(lambda: store.append_events(*self.key, events, owner))

    async def _end(self, response: dict[str, Any], events: list[Event]) -> bool:
        renew, owner = self.service.store.renew, self.service.owner
        # A response that another server has failed meanwhile must not add to its conversation.
        if self.key not in await self._patiently(lambda: renew(owner, [self.key])):
            return False
        await self.reply.converse()
        return await self._patiently(lambda: self._put(response, events))

    async def _put(self, response: dict[str, Any], events: list[Event]) -> bool:
        """Store ``response`` and ``events`` in one step; whether this server still held it."""
        record = replace(record_of(self.reply, response), version=self._version)
        if not _is_last(events[-1]):
            record = replace(record, owner=self.service.owner)
        version = await self.service.store.put(record, events) or await self._found(record)
        if version:
            self.response, self._version = response, version
        return version > 0

    async def _found(self, record: Record) -> int:
        """The version under which ``record`` is stored after all: an answer may have been lost."""
        found = await self.service.store.get(*self.key)
        same = found is not None and replace(found, version=record.version) == record
        return found.version if found is not None and same else 0

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """Take ``step`` again while it fails, but no longer than the lease goes."""
        until = time.monotonic() + self.service.settings.lease_seconds
        while True:
            try:
                return await step()
            except Exception:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(RETRY_SECONDS)


def _is_last(event: Event) -> bool:
    return event["type"] in ENDS


def _queued(response: dict[str, Any]) -> dict[str, Any]:
    return {**deepcopy(response), "status": "queued"}


def folded(response: dict[str, Any], events: Iterable[Event]) -> dict[str, Any]:
    """``response`` after ``events``: its status, and the items that are done."""
    for event in events:
        if event["type"] in ENDS:
            return dict(event["response"])
        if event["type"] == "response.in_progress":
            response = {**response, "status": "in_progress"}
        elif event["type"] == "response.output_item.done":
            response = {**response, "output": [*response["output"], event["item"]]}
    return response
