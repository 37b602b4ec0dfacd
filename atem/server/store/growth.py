"""What every store has: its bounds, its clock, and who waits for a record to change.

Rules: used on one event loop. An event is kept only as long as somebody has it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from .interface import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interface import Key


class Growing:
    """The part of a :class:`~atem.server.store.Store` that tells its own process of changes."""

    poll: float

    def __init__(self, bounds: Bounds | None, clock: Callable[[], float]) -> None:
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._next: WeakValueDictionary[Key, asyncio.Event] = WeakValueDictionary()

    def growth(self, tenant: str, record_id: str) -> asyncio.Event:
        """The event that the next change sets."""
        key = (tenant, record_id)
        event = self._next.get(key)
        if event is None:
            event = self._next[key] = asyncio.Event()
        return event

    def _tell(self, tenant: str, record_id: str) -> None:
        """The record, or its log, has changed."""
        event = self._next.pop((tenant, record_id), None)
        if event is not None:
            event.set()
