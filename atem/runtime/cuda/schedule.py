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
    from collections.abc import Sequence

    from ...engine import Step
    from ..generation import Generation
    from ..prefix import Trail

PATIENCE: Final = 16
"""Steps that are made for a request before somebody reads the first of them."""


@dataclass(eq=False, slots=True)
class Job:
    """A request: ``ids`` of prompt and output, of which the first ``done`` are in the cache.

    ``steps`` wait to be read. ``order`` counts jobs as they came, ``asked`` is
    the last time somebody wanted a step. ``gone`` means that it needs no seat
    any more: it has ended, or nobody reads it.
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

    def gap(self, job: Job) -> tuple[int, int] | None:
        """From where to where the last seat's job moves when ``job`` leaves, if it does."""
        if job not in self.seats:
            return None
        seat, last = self.seats.index(job), len(self.seats) - 1
        return None if seat == last else (last, seat)

    def leave(self, job: Job) -> None:
        """Take ``job`` out, and move the last seat's into its gap."""
        if job in self.seats:
            seat, last = self.seats.index(job), self.seats.pop()
            if last is not job:
                self.seats[seat] = last
        elif job in self.waiting:
            self.waiting.remove(job)

    def clear(self) -> None:
        """Forget all jobs."""
        self.seats.clear()
        self.waiting.clear()

    def idlest(self) -> Job:
        """The seated job that nobody has asked for the longest time."""
        return min(self.seats, key=lambda job: job.asked)


def longest(jobs: Sequence[Job]) -> Job:
    """The job with the most tokens, the later one of two."""
    return max(jobs, key=lambda job: (len(job.ids), job.order))
