"""What every back end of the store can do.

Rules: every call is asynchronous, one step for whoever else uses the store, and
safe beside others, of this process or another's. What one tenant keeps another
can't see: an id of somebody else is an unknown one. Bytes are bounded after
every ``put``, but for what is open and for the record just put; what is too old
is gone after ``expire``, and there until then.

An open record is held by its owner for ``Bounds.lease_seconds`` from when it was
put, renewed or taken over. A lease that has run out is the owner's still, until
somebody takes over. Time is what the clock of the server that calls says: the
clocks of those that share a store must agree to well within a lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

    from .record import Record

Key: TypeAlias = tuple[str, str]
"""Tenant and id."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: ``seconds`` from the last ``put``, ``bytes`` of all records and logs.

    ``log_seconds`` is how long an event log is kept after its record was closed,
    ``lease_seconds`` how long an owner may say nothing.
    """

    seconds: float = 30 * 86400.0
    bytes: int = 1 << 30
    log_seconds: float = 3600.0
    lease_seconds: float = 15.0


class Store(Protocol):
    """Records by tenant and id, and an event log for each."""

    poll: float
    """Seconds after which a reader looks at a log again, whatever ``growth`` told."""

    async def put(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """Keep ``record`` in place of the one that has its ``version``; 0 is that of none.

        ``events`` are added to its log in the same step. The version that it has
        now; 0 if nothing was done, because there is another one. While it stays
        open, an end that was asked for (:meth:`cancel`) is still asked for.
        """

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """The record; None if there is none, or none any more."""

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """The record last put of those that hold the item."""

    async def delete(self, tenant: str, record_id: str) -> None:
        """Drop the record and its log."""

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str
    ) -> bool:
        """Add ``events`` to the log of the record, by their ``sequence_number``.

        Whether that was done: nothing happens if the record is gone or has
        another owner.
        """

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """At most ``limit`` events with a number above ``after``, in order."""

    def growth(self, tenant: str, record_id: str) -> asyncio.Event:
        """What is set by the next change of the record or its log that this store learns of.

        Taken before a look, it misses nothing of what is done through this
        object; what others do it may tell or not, so look every ``poll`` seconds.
        """

    async def renew(self, owner: str, keys: Iterable[Key]) -> dict[Key, bool]:
        """Hold the open records ``keys`` of ``owner`` for another lease.

        Those that it still holds, with whether their end was asked for.
        """

    async def cancel(self, tenant: str, record_id: str) -> bool:
        """Ask the owner of a record to end it; whether it is open."""

    async def take_over(self, owner: str) -> list[Record]:
        """The open records of all tenants whose lease has run out, from now on held by ``owner``.

        Each has a new version, and is given to one caller alone.
        """

    async def expire(self) -> None:
        """Drop what is too old."""

    async def size(self) -> int:
        """Bytes kept."""

    async def close(self) -> None:
        """Give everything back."""
