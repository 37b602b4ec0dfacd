"""Background responses as any server sees them, whichever one writes them.

Rules: what is told comes from the store alone. Readers wait to be told of a
change, and look again after a while in any case; all who want the same look
once. Source: responses.md 1.10.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

from ..responses.faults import bad_value
from ..responses.outcome import ENDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..responses.outcome import Event
    from .service import Service
    from .store import Record, Store
    from .store.interface import Key

    Looks: TypeAlias = dict[int, asyncio.Future[list[Event]]]

PAGE: Final = 64
"""Events that are read at once: what a reader that takes nothing holds in memory."""

CHECK_SECONDS: Final = 1.0
"""After which a silent reader looks whether its response is still written."""

DELETED: Final = {"code": "server_error", "message": "The response was deleted."}

CANCEL_SECONDS: Final = 10.0
"""That another server may take to end a response."""


async def logged(store: Store, record: Record, after: int) -> AsyncGenerator[list[Event], None]:
    """The events of a background response after the number ``after``, up to its last.

    One that is deleted meanwhile ends as failed. Raises ApiError (400) if it
    has no log, or none any more.
    """
    key = (record.tenant, record.id)
    if not record.body["response"]["background"]:
        raise bad_value("stream", "Only a response with background: true can be streamed again.")
    if not await store.read_events(*key, -1, 1):
        raise bad_value("stream", "The events of this response are not kept any more.")
    is_open, changed, check = record.open, False, time.monotonic() + CHECK_SECONDS
    while True:
        growth = store.growth(*key)
        events = await _page(store, key, after, growth)
        if not (events or is_open):  # what others have read before says nothing about its end
            events = await store.read_events(*key, after, PAGE)
        if events:
            after, changed = events[-1]["sequence_number"], False
            yield events
            if events[-1]["type"] in ENDS:
                return
        elif not is_open:
            break
        elif changed or time.monotonic() > check:
            is_open, changed = await _is_open(store, record), False
            check = time.monotonic() + CHECK_SECONDS
        else:
            await _pause(store, growth)
            changed = growth.is_set()
    if await store.get(*key) is None:
        yield [_deleted(record, after + 1)]


def _deleted(record: Record, number: int) -> Event:
    response = {**record.body["response"], "status": "failed", "error": DELETED}
    return {"type": "response.failed", "sequence_number": number, "response": response}


async def _page(store: Store, key: Key, after: int, growth: asyncio.Event) -> list[Event]:
    """What follows ``after``, read once for all who want it since the last change."""
    looks = _LOOKS.setdefault(growth, {})
    look = looks.get(after)
    if look is None:
        look = looks[after] = asyncio.ensure_future(store.read_events(*key, after, PAGE))
        look.add_done_callback(lambda done: _forget(looks, after, done, store.poll / 2))
    return await asyncio.shield(look)


def _forget(looks: Looks, after: int, done: asyncio.Future[list[Event]], seconds: float) -> None:
    """Look again from now on if it failed, else soon: others may have written."""
    failed = done.cancelled() or done.exception() is not None
    asyncio.get_running_loop().call_later(0 if failed else seconds, looks.pop, after, None)


_LOOKS: Final[WeakKeyDictionary[asyncio.Event, Looks]] = WeakKeyDictionary()
"""The latest looks, by the change that readers wait for and the number they have."""


async def cancel(service: Service, record: Record) -> None:
    """End a background response as cancelled, whoever writes it.

    Returns once that is stored, or after some seconds in which its server didn't.
    """
    job = service.jobs.get((record.tenant, record.id))
    if job is not None:
        await job.cancel()
    elif await service.store.cancel(record.tenant, record.id):
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await _closed(service.store, record)


async def _closed(store: Store, record: Record) -> None:
    growth = store.growth(record.tenant, record.id)
    while await _is_open(store, record):
        await _pause(store, growth)
        growth = store.growth(record.tenant, record.id)


async def _is_open(store: Store, record: Record) -> bool:
    found = await store.get(record.tenant, record.id)
    return found is not None and found.open


async def _pause(store: Store, growth: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(store.poll):
            await growth.wait()
