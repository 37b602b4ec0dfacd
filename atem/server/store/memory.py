"""The store that ends with the process.

Rules: what is kept is packed as at rest, so that nobody's change reaches it and
its bytes can be counted.
"""

from __future__ import annotations

import time
from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .growth import Growing
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .interface import Bounds, Key


@dataclass(slots=True)
class _Kept:
    """``record`` without its body, which is ``packed``; ``touched`` is when it was put.

    ``until`` is when its lease runs out, ``ending`` whether its end was asked for.
    """

    record: Record
    packed: bytes
    touched: float
    until: float
    ending: bool = False
    events: dict[int, bytes] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    size: int = 0


class MemoryStore(Growing):
    """A :class:`~atem.server.store.Store` in this process."""

    poll = 5.0
    """Nobody else writes this store: all is told."""

    def __init__(
        self, bounds: Bounds | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(bounds, clock)
        self._kept: dict[Key, _Kept] = {}
        self._items: dict[Key, Key] = {}
        self._bytes = 0

    async def put(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """See :class:`~atem.server.store.Store`."""
        key = (record.tenant, record.id)
        before = self._kept.get(key)
        if record.version != (before.record.version if before else 0):
            return 0
        self._drop(key)
        now = self._clock()
        about = replace(record, body={}, version=record.version + 1)
        kept = _Kept(about, pack(record.body), now, now + self._bounds.lease_seconds)
        self._kept[key] = kept
        self._grow(kept, len(kept.packed))
        if before is not None:
            kept.ending = record.open and before.ending
            kept.events, kept.numbers = before.events, before.numbers
            self._grow(kept, sum(map(len, kept.events.values())))
        self._append(kept, events)
        for item_id in record.item_ids:
            self._items[record.tenant, item_id] = key
        self._make_room(key)
        self._tell(*key)
        return about.version

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None:
            return None
        return replace(kept.record, body=unpack(kept.packed))

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        key = self._items.get((tenant, item_id))
        return None if key is None else await self.get(*key)

    async def delete(self, tenant: str, record_id: str) -> None:
        """See :class:`~atem.server.store.Store`."""
        self._drop((tenant, record_id))
        self._tell(tenant, record_id)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str
    ) -> bool:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None or kept.record.owner != owner:
            return False
        self._append(kept, events)
        self._tell(tenant, record_id)
        return True

    def _append(self, kept: _Kept, events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            packed, number = pack(event), event["sequence_number"]
            if number not in kept.events:
                insort(kept.numbers, number)
            self._grow(kept, len(packed) - len(kept.events.get(number, b"")))
            kept.events[number] = packed

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None:
            return []
        first = bisect_right(kept.numbers, after)
        return [unpack(kept.events[number]) for number in kept.numbers[first : first + limit]]

    async def renew(self, owner: str, keys: Iterable[Key]) -> dict[Key, bool]:
        """See :class:`~atem.server.store.Store`."""
        held = {key: kept for key in keys if (kept := self._open(key, owner)) is not None}
        for kept in held.values():
            kept.until = self._clock() + self._bounds.lease_seconds
        return {key: kept.ending for key, kept in held.items()}

    async def cancel(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        kept = self._open((tenant, record_id))
        if kept is not None:
            kept.ending = True
        return kept is not None

    async def take_over(self, owner: str) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        left = [kept for kept in self._kept.values() if kept.record.open and kept.until <= now]
        for kept in left:
            kept.record = replace(kept.record, owner=owner, version=kept.record.version + 1)
            kept.until = now + self._bounds.lease_seconds
        return [replace(kept.record, body=unpack(kept.packed)) for kept in left]

    async def expire(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        oldest, silent = now - self._bounds.seconds, now - self._bounds.log_seconds
        for key, kept in list(self._kept.items()):
            if kept.record.open:
                continue
            if kept.touched <= oldest:
                self._drop(key)
            elif kept.touched < silent:
                self._grow(kept, -sum(map(len, kept.events.values())))
                kept.events.clear()
                kept.numbers.clear()

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        return self._bytes

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        self._kept.clear()
        self._items.clear()
        self._bytes = 0

    def _open(self, key: Key, owner: str | None = None) -> _Kept | None:
        """The open record of ``key``, if it is this owner's."""
        kept = self._kept.get(key)
        if kept is None or not kept.record.open:
            return None
        return kept if owner in (None, kept.record.owner) else None

    def _make_room(self, newest: Key) -> None:
        if self._bytes <= self._bounds.bytes:
            return
        for key, kept in list(self._kept.items()):
            if self._bytes <= self._bounds.bytes:
                return
            if key != newest and not kept.record.open:
                self._drop(key)

    def _grow(self, kept: _Kept, by: int) -> None:
        kept.size += by
        self._bytes += by

    def _drop(self, key: Key) -> None:
        """Take a record out, its items and its bytes with it."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
        for item_id in kept.record.item_ids if kept else ():
            item = (key[0], item_id)
            if self._items.get(item) == key:
                del self._items[item]
