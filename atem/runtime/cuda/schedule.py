"""Who computes what next: plain Python over ints and lists.

Rules: no tensor is known here. The first seats are taken, without a gap: a
request's seat is its slot in the cache. Whoever reads slowly is not advanced,
so that what waits to be read is bounded.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...engine import Step
    from ..generation import Generation
    from ..prefix import Trail

PATIENCE: Final = 16
"""Steps that are made for a request before somebody reads the first of them."""


@dataclass(eq=False, slots=True)
class Job:
    """A request: ``ids`` of prompt and output, of which the first ``done`` are in the cache.

    ``steps`` wait to be read. ``order`` counts jobs as they came, ``asked`` is
    the last time somebody wanted a step.
    """

    generation: Generation
    ids: list[int]
    done: int = 0
    order: int = 0
    asked: int = 0
    steps: deque[Step] = field(default_factory=deque)
    trail: Trail[Any] | None = None
    error: BaseException | None = None
    gone: bool = False

    @property
    def is_next(self) -> bool:
        """Whether only the last token has to be computed: the one whose logits are wanted."""
        return len(self.ids) - self.done == 1


class Schedule:
    """``seats`` hold jobs that have a slot, ``waiting`` those that want one."""

    def __init__(self, size: int, chunk: int) -> None:
        self._size, self._chunk = size, chunk
        self._clock = 0
        self.seats: list[Job] = []
        self.waiting: deque[Job] = deque()

    @property
    def has_seat(self) -> bool:
        """Whether a seat is free."""
        return len(self.seats) < self._size

    def ask(self, job: Job) -> None:
        """Somebody wants a step of ``job``; it waits for a seat if it has none."""
        self._clock += 1
        job.asked = self._clock
        if job not in self.seats and job not in self.waiting:
            job.order = self._clock
            self.waiting.append(job)

    def filling(self) -> tuple[int, range] | None:
        """Seat and next positions to compute of whoever came first and needs more than one."""
        behind = [job for job in self.seats if not job.is_next]
        if not behind:
            return None
        job = min(behind, key=lambda job: job.order)
        return self.seats.index(job), range(job.done, min(job.done + self._chunk, len(job.ids)))

    def ready(self) -> list[int]:
        """Seats whose next token can be computed now."""
        return [
            seat for seat, job in enumerate(self.seats) if job.is_next and len(job.steps) < PATIENCE
        ]

    def leave(self, job: Job) -> tuple[int, int] | None:
        """Take ``job`` out. The last seat moves into the gap: from where to where, if it does."""
        if job in self.waiting:
            self.waiting.remove(job)
        if job not in self.seats:
            return None
        seat, last = self.seats.index(job), len(self.seats) - 1
        self.seats[seat] = self.seats[last]
        self.seats.pop()
        return None if seat == last else (last, seat)

    def idlest(self) -> Job:
        """The seated job that nobody has asked for the longest time."""
        return min(self.seats, key=lambda job: job.asked)

    def longest(self) -> Job:
        """The seated job with the most tokens, the later one of two."""
        return max(self.seats, key=lambda job: (len(job.ids), job.order))
