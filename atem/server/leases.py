"""Who writes which background response: what this server holds, and what nobody does any more.

Rules: a server that says nothing for the length of a lease is taken for dead.
Whichever server notices first closes what that one left open, as failed; the
store lets one do it alone. Source: responses.md 1.10, 5.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .following import PAGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .service import Service
    from .store import Record, Store

BEAT_SECONDS: Final = 0.5
"""Between two looks at what others asked for."""

EXPIRE_SECONDS: Final = 600.0
"""Between two looks at what is too old to be kept."""

ABANDONED: Final = {
    "code": "server_error",
    "message": "The server that was writing this response is gone.",
}


async def tend(service: Service) -> None:
    """Hold what this server writes, and now and then close what nobody holds and drop what is old.

    Without end: a store that is away is asked again.
    """
    store, lease = service.store, service.settings.lease_seconds
    await asyncio.gather(
        _each(min(BEAT_SECONDS, lease / 4), service, "renewing leases", lambda: hold(service)),
        _each(lease / 3, service, "recovering", lambda: recover(store, service.owner)),
        _each(EXPIRE_SECONDS, service, "dropping what is too old", store.expire),
    )


async def _each(
    seconds: float, service: Service, doing: str, step: Callable[[], Awaitable[Any]]
) -> None:
    well = True
    while True:
        await asyncio.sleep(seconds)
        try:
            await step()
            well = True
        except Exception as error:  # noqa: BLE001 - a store that is away has many types
            if well:  # else it was said
                service.report(error, doing)
            well = False


async def hold(service: Service) -> None:
    """Renew the leases of this server; end what is lost, and what others asked to end."""
    jobs = dict(service.jobs)
    held = await service.store.renew(service.owner, jobs) if jobs else {}
    for key, job in jobs.items():
        if key not in held:
            job.lose()
        elif held[key] and not job.reply.over:
            job.reply.stop()


async def recover(store: Store, owner: str) -> int:
    """Close what was left open; how many responses that were."""
    records = await store.take_over(owner)
    for record in records:
        await _close(store, record)
    return len(records)


async def _close(store: Store, record: Record) -> None:
    number = -1
    while events := await store.read_events(record.tenant, record.id, number, PAGE):
        number = events[-1]["sequence_number"]
    response = {**record.body["response"], "status": "failed", "error": ABANDONED}
    last = {"type": "response.failed", "sequence_number": number + 1, "response": response}
    body = {**record.body, "response": response}
    await store.put(replace(record, owner="", body=body), [last])
