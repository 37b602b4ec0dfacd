"""What every back end of the store can do.

Rules: every call is asynchronous and safe beside others. What one tenant keeps
another can't see: an id of somebody else is an unknown one. Bytes are bounded
after every ``put``, but for what is open and for the record just put; what is
too old is not found, and gone after ``expire``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .record import Record


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: ``seconds`` from creation, ``bytes`` of all records and logs at rest.

    ``log_seconds`` is how long an event log is kept after its record was closed.
    """

    seconds: float = 30 * 86400.0
    bytes: int = 1 << 30
    log_seconds: float = 3600.0


class Store(Protocol):
    """Records by tenant and id, and an event log for each."""

    async def put(self, record: Record) -> None:
        """Keep ``record``, in place of one with the same tenant and id; its log stays."""

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """The record; None if there is none, or none any more."""

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """The record last put of those that hold the item."""

    async def delete(self, tenant: str, record_id: str) -> bool:
        """Drop the record and its log; whether there was one."""

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]]
    ) -> None:
        """Add ``events`` to the log of the record, by their ``sequence_number``.

        Nothing happens if the record is gone.
        """

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """At most ``limit`` events with a number above ``after``, in order."""

    async def unfinished(self) -> list[Record]:
        """The open records of every tenant: at a start, what nobody writes any more."""

    async def expire(self) -> int:
        """Drop what is too old; how many records that were."""

    async def size(self) -> int:
        """Bytes kept."""

    async def close(self) -> None:
        """Give everything back."""
