"""From who writes a response to who reads it, both on the event loop.

Rules: what waits is bounded, and what waits together is taken together. Nothing
is lost when whoever waits is cancelled. Many waits share one timer, because
there are as many as there are tokens.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .merging import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..responses.outcome import Event


class Mailbox:
    """Events, of which more than ``most`` hold up whoever writes them.

    ``closed``: nobody reads any more, and what comes is thrown away.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._events: list[Event] = []
        self._news = Bell()
        self._room = Bell()
        self._ended = False
        self._error: Exception | None = None
        self.closed = False

    def add(self, events: Sequence[Event]) -> None:
        """Hand on."""
        if events and not self.closed:
            self._events += events
            self._news.ring()

    async def put(self, events: Sequence[Event]) -> None:
        """Hand on, and wait while there is too much."""
        self.add(events)
        while len(self._events) > self._most:
            await self._room.wait()

    def end(self, error: Exception | None = None) -> None:
        """Nothing more comes; what waits is still read, then ``error`` is raised."""
        if not self._ended:
            self._ended, self._error = True, error
            self._news.ring()

    def close(self) -> None:
        """Nobody reads any more."""
        self.closed = True
        self._events = []
        self._room.ring()

    async def take(self, silence: float | None = None) -> list[Event] | None:
        """All that came; none after ``silence`` seconds without any; None at the end."""
        while not (self._events or self._ended):
            if not await self._news.wait(silence):
                return []
        if self._events:
            events, self._events = self._events, []
            self._room.ring()
            return merged(events)
        if self._error is not None:
            raise self._error
        return None


class Bell:
    """Rung by one, waited for by another; a ring that nobody waits for is kept."""

    def __init__(self) -> None:
        self._rung = False
        self._waiting: asyncio.Future[None] | None = None
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def ring(self) -> None:
        """Wake whoever waits."""
        self._rung = True
        self._wake()

    async def wait(self, seconds: float | None = None) -> bool:
        """Whether it has been rung since the last time, or is within ``seconds``."""
        if not self._rung:
            self._set(seconds)
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        rung, self._rung = self._rung, False
        return rung

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _set(self, seconds: float | None) -> None:
        """Let the timer go off then, or earlier; it looks again."""
        loop = asyncio.get_running_loop()
        self._until = None if seconds is None else loop.time() + seconds
        if self._until is not None and (self._timer is None or self._timer.when() > self._until):
            self._timer = loop.call_at(self._until, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._until is None or self._waiting is None or self._waiting.done():
            return
        left = self._until - asyncio.get_running_loop().time()
        if left > 0:
            self._set(left)
        else:
            self._wake()
