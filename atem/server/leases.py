"""Who writes which background response: what this server holds, and what nobody does any more.

Rules: a server that says nothing for the length of a lease is taken for dead.
Whichever server notices first closes what that one left open, as failed; the
store lets one do it alone. Source: responses.md 1.10, 5.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .following import PAGE

if TYPE_CHECKING:
    from .service import Service
    from .store import Record, Store

BEAT_SECONDS: Final = 0.5
"""Between two looks at what others asked for."""

ABANDONED: Final = {
    "code": "server_error",
    "message": "The server that was writing this response is gone.",
}


async def tend(service: Service) -> None:
    """Hold what this server writes, and now and then close what nobody holds; without end."""
    lease = service.settings.lease_seconds
    swept, well = time.monotonic(), True
    while True:
        await asyncio.sleep(min(BEAT_SECONDS, lease / 4))
        try:
            await hold(service)
            if time.monotonic() - swept > lease / 3:
                await recover(service.store, service.owner)
                swept = time.monotonic()
            well = True
        except Exception as error:  # noqa: BLE001 - a store that is away has many types
            if well:  # else it was said
                service.report(error, "renewing leases")
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
    await store.swap(replace(record, open=False, owner="", body=body), [last])
