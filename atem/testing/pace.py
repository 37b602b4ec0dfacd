"""An engine that keeps time: for trying servers and clients at the speed of a model.

Rules: whoever reads the steps waits for each; a server need not, since a clock of
the engine's, one thread for all its generations, can push them. A step is due by
the clock, not by when the one before was taken.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine import Engine, EngineInfo, Request, Step
    from ..tokenizer import Tokenizer

    Give = Callable[[Step | Exception | None], bool]


class PacedEngine:
    """``engine`` at a pace: ``first`` seconds before the first step, ``gap`` between two."""

    def __init__(self, engine: Engine, gap: float, first: float = 0.0) -> None:
        self._engine = engine
        self._gap = gap
        self._first = first
        self._clock = Clock()

    @property
    def info(self) -> EngineInfo:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.tokenizer

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`; ``close`` wakes whoever waits for a step."""
        return Paced(self._engine.generate(request), self._gap, self._first, self._clock)

    def close(self) -> None:
        """See :class:`~atem.engine.Engine`."""
        self._engine.close()


class Paced:
    """The steps of one generation."""

    def __init__(self, steps: Iterator[Step], gap: float, first: float, clock: Clock) -> None:
        self._steps: Any = steps
        self._gap = gap
        self._wait = first
        self._clock = clock
        self._closed = threading.Event()
        self._give: Give | None = None

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        if self._closed.wait(self._wait):
            raise StopIteration
        self._wait = self._gap
        step: Step = next(self._steps)
        return step

    def push(self, give: Give) -> None:
        """Have the clock call ``give`` for each step; see :mod:`atem.server.feed`."""
        self._give = give
        self._clock.call(time.monotonic() + self._wait, self)

    def tick(self, due: float) -> None:
        """On the clock's thread: give one step, and ask for the next."""
        if self._give is None:  # it was closed, and this is the call that it had asked for before
            return
        try:
            step = None if self._closed.is_set() else next(self._steps, None)
        except Exception as error:  # noqa: BLE001 - the reader's to handle
            self._end(error)
            return
        if step is not None and self._give(step):
            self._clock.call(due + self._gap, self)
        else:
            self._end()

    def close(self) -> None:
        """End it, from any thread, and without waiting."""
        self._closed.set()
        if self._give is not None:
            self._clock.call(0.0, self)

    def _end(self, error: Exception | None = None) -> None:
        give, self._give = self._give, None
        self._steps.close()
        assert give is not None
        give(error)


class Clock:
    """Calls ``tick`` of each when it is due, on one thread, which ends when nothing is."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Paced]] = []
        self._count = itertools.count()
        self._changed = threading.Condition()
        self._runs = False

    def call(self, due: float, paced: Paced) -> None:
        """From any thread: call it then (monotonic)."""
        with self._changed:
            first = not self._due or due < self._due[0][0]
            heapq.heappush(self._due, (due, next(self._count), paced))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="atem-pace", daemon=True).start()
            elif first:
                self._changed.notify()

    def _run(self) -> None:
        while (ready := self._next()) is not None:
            due, paced = ready
            paced.tick(due)

    def _next(self) -> tuple[float, Paced] | None:
        """What is due first, once it is; None if there is nothing."""
        with self._changed:
            while self._due:
                wait = self._due[0][0] - time.monotonic()
                if wait <= 0:
                    due, _, paced = heapq.heappop(self._due)
                    return due, paced
                self._changed.wait(wait)
            self._runs = False
            return None
