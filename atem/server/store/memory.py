"""The store that ends with the process.

Rules: what is kept is packed as at rest, so that nobody's change reaches it and
its bytes can be counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from .interface import Bounds
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _Kept:
    """``record`` without its body, which is ``packed``; ``touched`` is when it was put."""

    record: Record
    packed: bytes
    touched: float
    events: dict[int, bytes] = field(default_factory=dict)
    size: int = 0


class MemoryStore:
    """A :class:`~atem.server.store.Store` in this process."""

    def __init__(
        self, bounds: Bounds | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._kept: dict[Key, _Kept] = {}
        self._items: dict[Key, Key] = {}
        self._bytes = 0

    async def put(self, record: Record) -> None:
        """See :class:`~atem.server.store.Store`."""
        key = (record.tenant, record.id)
        before = self._drop(key)
        kept = _Kept(replace(record, body={}), pack(record.body), self._clock())
        self._kept[key] = kept
        self._grow(kept, len(kept.packed))
        if before is not None:
            kept.events = before.events
            self._grow(kept, sum(map(len, kept.events.values())))
        for item_id in record.item_ids:
            self._items[record.tenant, item_id] = key
        self._make_room(key)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None or self._old(kept):
            return None
        return replace(kept.record, body=unpack(kept.packed))

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        key = self._items.get((tenant, item_id))
        return None if key is None else await self.get(*key)

    async def delete(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        was = await self.get(tenant, record_id) is not None
        self._drop((tenant, record_id))
        return was

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]]
    ) -> None:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None:
            return
        for event in events:
            packed = pack(event)
            self._grow(kept, len(packed) - len(kept.events.get(event["sequence_number"], b"")))
            kept.events[event["sequence_number"]] = packed

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        kept = self._kept.get((tenant, record_id))
        if kept is None or self._old(kept):
            return []
        later = sorted(number for number in kept.events if number > after)
        return [unpack(kept.events[number]) for number in later[:limit]]

    async def unfinished(self) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        found = [await self.get(*key) for key, kept in self._kept.items() if kept.record.open]
        return [record for record in found if record is not None]

    async def expire(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        old = [key for key, kept in self._kept.items() if self._old(kept)]
        for key in old:
            self._drop(key)
        silent = self._clock() - self._bounds.log_seconds
        for kept in self._kept.values():
            if not kept.record.open and kept.touched < silent:
                self._grow(kept, -sum(map(len, kept.events.values())))
                kept.events.clear()
        return len(old)

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        return self._bytes

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        self._kept.clear()
        self._items.clear()
        self._bytes = 0

    def _old(self, kept: _Kept) -> bool:
        ends = kept.record.created + self._bounds.seconds
        return not kept.record.open and ends <= self._clock()

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

    def _drop(self, key: Key) -> _Kept | None:
        """Take a record out, its items and its bytes with it."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
        for item_id in kept.record.item_ids if kept else ():
            item = (key[0], item_id)
            if self._items.get(item) == key:
                del self._items[item]
        return kept
