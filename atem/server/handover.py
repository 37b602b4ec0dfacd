"""From a thread to the event loop, with a bound.

Rules: one thread puts, one task takes. The loop is woken once for all that came
since it last looked. A full hand-over stops the thread, so that memory stays
bounded and an engine writes no faster than somebody reads; a reader that takes
nothing for too long is given up.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Generic, TypeVar

from .interrupt import Interrupt

T = TypeVar("T")


class Handover(Generic[T]):
    """At most ``most`` things on their way; ``patience`` is seconds to wait for room."""

    def __init__(self, most: int, patience: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._lock = threading.Condition()
        self._most = most
        self._patience = patience
        self._things: list[T] = []
        self._ended = False
        self._closed = False
        self.abandoned = False
        """Whether the reader was given up."""

    def put(self, thing: T) -> None:
        """From the thread: hand on. Raises Interrupt once nobody reads any more."""
        with self._lock:
            room = self._lock.wait_for(self._has_room, self._patience)
            if not room:
                self.abandoned = self._closed = True
            if self._closed:
                raise Interrupt
            first = not self._things
            self._things.append(thing)
        if first:  # else the loop is on its way
            self._wake()

    def end(self) -> None:
        """From the thread: nothing more comes."""
        with self._lock:
            self._ended = True
        self._wake()

    async def take(self) -> list[T]:
        """All that came, waiting for something; nothing at the end."""
        while True:
            with self._lock:
                self._arrived.clear()
                things, self._things = self._things, []
                ended = self._ended
                self._lock.notify_all()
            if things or ended:
                return things
            await self._arrived.wait()

    def close(self) -> None:
        """From the loop: nobody reads any more."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _has_room(self) -> bool:
        return self._closed or len(self._things) < self._most

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be woken
            self._loop.call_soon_threadsafe(self._arrived.set)
