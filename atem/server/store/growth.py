"""Who waits for a record to change, in this process.

Rules: used on one event loop. An event is kept only as long as somebody has it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from .interface import Key


class Growth:
    """An event for each record that somebody looks at, set by its next change."""

    def __init__(self) -> None:
        self._next: WeakValueDictionary[Key, asyncio.Event] = WeakValueDictionary()

    def next(self, key: Key) -> asyncio.Event:
        """The event that the next :meth:`tell` sets."""
        event = self._next.get(key)
        if event is None:
            event = self._next[key] = asyncio.Event()
        return event

    def tell(self, key: Key) -> None:
        """The record of ``key`` has changed."""
        event = self._next.pop(key, None)
        if event is not None:
            event.set()
