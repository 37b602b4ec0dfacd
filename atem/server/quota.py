"""How often each key may ask.

Rules: a bucket for each key, filled evenly; nothing is counted where there is no
limit. A request counts when it is read, whatever becomes of it. Without keys,
everybody is one.
"""

from __future__ import annotations

import time
from math import ceil
from typing import TYPE_CHECKING, Final

from ..responses.faults import rate_limited

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE: Final = 60.0
HEADERS: Final = tuple(f"x-ratelimit-{part}-requests" for part in ("limit", "remaining", "reset"))


class Quota:
    """``most`` requests a minute for each key; None for as many as it likes."""

    def __init__(self, most: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, tenant: str) -> None:
        """Count a request. Raises ApiError (429), which says when to ask again."""
        if self._most is None:
            return
        left = self._now(tenant)
        if left < 1:
            wait = (1 - left) * MINUTE / self._most
            raise rate_limited(
                f"This key may send {self._most} requests a minute; "
                f"please try again in {wait:.3g}s.",
                retry_after=wait,
            )
        self._left[tenant] = (left - 1, self._clock())

    def headers(self, tenant: str) -> dict[str, str]:
        """What an answer says about it: the limit, what is left, and when all is there again."""
        if self._most is None:
            return {}
        left = self._now(tenant)
        full = ceil((self._most - left) * MINUTE / self._most)
        return dict(zip(HEADERS, (str(self._most), str(int(left)), f"{full}s"), strict=True))

    def _now(self, tenant: str) -> float:
        """Requests that are left."""
        assert self._most is not None
        now = self._clock()
        left, then = self._left.get(tenant, (float(self._most), now))
        return min(self._most, left + (now - then) * self._most / MINUTE)
