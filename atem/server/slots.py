"""How many generations run at once, and how many wait.

Rules: who finds no place to wait is told at once, before anything is answered,
and so is a key that has as many as it may. First come, first served. Used on the
event loop alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from ..responses.faults import rate_limited


class Slots:
    """Places for ``running`` at once, and for ``waiting`` more; ``each`` for one key."""

    def __init__(self, running: int, waiting: int, each: int | None = None) -> None:
        self._most = running
        self._room = waiting
        self._each = each
        self._held: Counter[str] = Counter()
        self._queue: deque[Place] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue)

    def enter(self, tenant: str = "") -> Place:
        """A place for a key, to run at once or to wait in. Raises ApiError (429)."""
        if self._each is not None and self._held[tenant] >= self._each:
            raise rate_limited(
                f"This key has {self._each} responses at once, as many as it may; try again later."
            )
        place = Place(self, tenant)
        if self.running < self._most:
            self._grant(place)
        elif len(self._queue) < self._room:
            self._queue.append(place)
        else:
            raise rate_limited(
                f"{self.running} requests are running and {self.waiting} waiting; try again later."
            )
        self._held[tenant] += 1
        return place

    def leave(self, place: Place) -> None:
        """What :meth:`Place.leave` does."""
        if place.left:
            return
        place.left = True
        self._held -= Counter([place.tenant])  # one that comes to nothing is forgotten
        if place.waits:
            self._queue.remove(place)
            place.granted.set_result(False)
        else:
            self.running -= 1
            if self._queue:
                self._grant(self._queue.popleft())

    def _grant(self, place: Place) -> None:
        self.running += 1
        place.granted.set_result(True)


class Place:
    """One request's place. ``granted`` gets True when it may run, False if it was left before."""

    def __init__(self, slots: Slots, tenant: str) -> None:
        self._slots = slots
        self.tenant = tenant
        self.left = False
        self.granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def waits(self) -> bool:
        """Whether it may not run yet."""
        return not self.granted.done()

    async def turn(self) -> bool:
        """Wait until it may run; whether it still wants to."""
        return await self.granted

    def leave(self) -> None:
        """Give it back; a second time does nothing."""
        self._slots.leave(self)
