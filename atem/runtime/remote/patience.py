"""How long to wait before a request is sent again, and how often.

Rules: waits grow and are spread at random, so that many clients don't come back
together. A server's ``Retry-After`` is obeyed up to a limit. Clock, sleep and
chance can be replaced, for tests.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from ...errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which a request is sent again.

500 is not among them: an engine that fails on a request fails on it again.
"""


@dataclass(frozen=True, slots=True)
class Patience:
    """At most ``retries`` further tries, ``base`` seconds apart at first, then twice as long.

    No wait is longer than ``longest`` seconds, whatever a server asks for.
    ``sleep`` None waits so that closing ends the wait. Raises OptionError for
    numbers below 0.
    """

    retries: int = 2
    base: float = 0.5
    longest: float = 30.0
    sleep: Callable[[float], object] | None = None
    clock: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if min(self.retries, self.base, self.longest) < 0:
            raise OptionError("retries, base and longest are 0 or more")

    def wait(self, tried: int, retry_after: str | None) -> float:
        """Seconds until the next try, after ``tried`` retries; half of it is left to chance."""
        growing = self.base * 2.0 ** min(tried, 30) * (0.5 + self.chance() / 2)
        return min(self.longest, max(growing, self._asked(retry_after)))

    def _asked(self, retry_after: str | None) -> float:
        """``Retry-After`` in seconds, given as a number or as a date; 0 if it is neither."""
        if retry_after is None:
            return 0.0
        text = retry_after.strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - self.clock())
        except (ValueError, OverflowError):
            return 0.0
