"""From a thread to the event loop, with a bound.

Rules: one thread puts, one task takes, and neither takes a lock: what each does
to the other's state is one step, and in an order in which nothing is missed. The
loop is woken once for all that came since it last looked, in all hand-overs
together. A full one stops the thread, so that memory stays bounded and an engine
writes no faster than somebody reads; a reader that takes nothing for too long is
given up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

from .interrupt import Interrupt

T = TypeVar("T")


class Handover(Generic[T]):
    """At most ``most`` things on their way; ``patience`` is seconds to wait for room."""

    def __init__(
        self, most: int, patience: float, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._waker = Waker.of(loop or asyncio.get_running_loop())
        self._arrived = asyncio.Event()
        self._told = False
        self._room = threading.Event()
        self._held_up = False
        self._most = most
        self._patience = patience
        self._things: deque[T] = deque()
        self._ended = False
        self.closed = False
        """Whether nobody reads any more."""
        self.abandoned = False
        """Whether the reader was given up."""

    def put(self, thing: T) -> None:
        """From the thread: hand on. Raises Interrupt once nobody reads any more."""
        if len(self._things) >= self._most:
            self._wait()
        if self.closed:
            raise Interrupt
        self._things.append(thing)
        self._tell()

    def offer(self, thing: T) -> bool:
        """From a thread that must not wait: hand on, however much waits; whether more is wanted."""
        if not self.closed:
            self._things.append(thing)
            self._tell()
        return not self.closed

    def __len__(self) -> int:
        """How many are on their way."""
        return len(self._things)

    def end(self) -> None:
        """From the thread: nothing more comes."""
        self._ended = True
        self._tell()

    async def take(self) -> list[T]:
        """All that came, waiting for something; nothing at the end, or once it is closed."""
        while True:
            self._arrived.clear()
            self._told = False
            ended = self._ended  # looked at first: what was put before it is taken now
            things = [self._things.popleft() for _ in range(len(self._things))]
            if self._held_up:
                self._held_up = False
                self._room.set()
            if things or ended or self.closed:
                return things
            await self._arrived.wait()

    def close(self) -> None:
        """From any thread: nobody reads any more."""
        self.closed = True
        self._room.set()
        self._tell()

    def _wait(self) -> None:
        """Wait for room, or give the reader up."""
        self._room.clear()
        self._held_up = True
        full = len(self._things) >= self._most and not self.closed
        if full and not self._room.wait(self._patience):
            self.abandoned = self.closed = True

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._waker.wake(self._arrived)


class Waker:
    """What wakes one event loop from threads, once for all that want to."""

    _of: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Waker]] = WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake_loop = loop.call_soon_threadsafe
        self._arrived: deque[asyncio.Event] = deque()
        self._told = False

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Waker:
        """The one of ``loop``."""
        return cls._of.setdefault(loop, cls(loop))

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
