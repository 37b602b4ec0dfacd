"""From a thread to the event loop, with a bound.

Rules: one thread puts, one task takes. The loop is woken once for all that came
since it last looked, in all hand-overs together. A full one stops the thread, so
that memory stays bounded and an engine writes no faster than somebody reads; a
reader that takes nothing for too long is given up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MOST_OFFERED: Final = 8192
"""Things on their way from a thread that can't wait, before the reader is given up."""


class Interrupt(Exception):
    """Nobody wants the rest."""


class Handover(Generic[T]):
    """At most ``most`` things on their way; ``patience`` is seconds to wait for room."""

    def __init__(self, most: int, patience: float, waker: Waker) -> None:
        self._most = most
        self._patience = patience
        self._waker = waker
        self._arrived = asyncio.Event()
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._things: list[T] = []
        self._ended = False
        self.closed = False
        """Whether nobody reads any more."""

    def put(self, thing: T) -> None:
        """From the thread: hand on. Raises Interrupt once nobody reads any more."""
        with self._lock:
            if len(self._things) >= self._most:
                self._wait()
            if self.closed:
                raise Interrupt
            self._add(thing)

    def offer(self, thing: T) -> bool:
        """From a thread that must not wait: hand on if there is room; whether more is wanted."""
        with self._lock:
            self.closed = self.closed or len(self._things) >= MOST_OFFERED
            if not self.closed:
                self._add(thing)
            return not self.closed

    def end(self) -> None:
        """From the thread: nothing more comes."""
        self._ended = True
        self._waker.wake(self._arrived)

    async def take(self) -> list[T]:
        """All that came, waiting for something; nothing at the end, or once it is closed."""
        while True:
            self._arrived.clear()
            with self._lock:
                things, self._things = self._things, []
                if len(things) >= self._most:
                    self._room.notify()
                if self.closed:
                    return []
                if things or self._ended:
                    return things
            await self._arrived.wait()

    def close(self) -> None:
        """On the loop: nobody reads any more."""
        with self._lock:
            self.closed = True
            self._room.notify()
        self._arrived.set()

    def _add(self, thing: T) -> None:
        self._things.append(thing)
        if len(self._things) == 1:
            self._waker.wake(self._arrived)

    def _wait(self) -> None:
        """Wait for room, or give the reader up."""
        free = self._room.wait_for(
            lambda: self.closed or len(self._things) < self._most, self._patience
        )
        self.closed = self.closed or not free


class Waker:
    """What wakes one event loop from threads, once for all that want to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake_loop = loop.call_soon_threadsafe
        self._arrived: deque[asyncio.Event] = deque()
        self._told = False

    def wake(self, arrived: asyncio.Event) -> None:
        """From a thread: set ``arrived`` soon."""
        self._arrived.append(arrived)
        if not self._told:
            self._told = True
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be woken
                self._wake_loop(self._set)

    def _set(self) -> None:
        self._told = False
        while self._arrived:
            self._arrived.popleft().set()
