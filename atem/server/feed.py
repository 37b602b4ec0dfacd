"""An engine's steps, pulled by a thread and taken on the event loop.

Rules: a thread does no more than wait for the engine, so that hundreds of them
don't stand in each other's way; what is made of a step is made on the loop,
which never waits. What may take long is done in a thread: to begin a turn, and
what follows from one that has ended.

An engine with a thread of its own needs no other: its iterator has a method
``push(give)``, and from then on the engine calls ``give(step)`` for each step
and ``give(None)``, or with an exception, at the end. ``give`` never waits, and
says whether more is wanted; the iterator is closed too when nothing more is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ..responses.running.idle import IDLE
from .handover import Handover
from .interrupt import Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from ..engine import EngineInfo, Request, Step
    from ..tokenizer import Tokenizer
    from .interrupt import Interruptible

MOST: Final = 64
"""Steps between thread and loop."""

MOST_PUSHED: Final = 8192
"""Steps on their way from an engine that can't be held up, before their reader is given up."""


class Feed:
    """``engine`` for one reply: an :class:`~atem.engine.Engine` that never waits for a step.

    ``submit`` runs a function in a thread; ``patience`` is seconds that the
    engine waits for whoever takes its steps. Made on the event loop.
    """

    def __init__(
        self, engine: Interruptible, submit: Callable[..., Future[Any]], patience: float
    ) -> None:
        self._engine = engine
        self._submit = submit
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._turn: _Turn | None = None

    @property
    def info(self) -> EngineInfo:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.tokenizer

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`; IDLE stands for a step that hasn't come yet.

        The steps raise Interrupt once the engine was stopped, or nobody took them.
        """
        steps = self._engine.begin(request)
        turn = self._turn = _Turn(Handover(MOST, self._patience, self._loop))
        push = getattr(steps, "push", None)
        if push is None:
            turn.thread = self._submit(turn.pull, self._engine.until_stopped(steps))
        else:
            turn.pushed = steps
            push(turn.give)
        return turn.steps()

    def close(self) -> None:
        """See :class:`~atem.engine.Engine`."""
        self._engine.close()

    @property
    def flows(self) -> bool:
        """Whether a turn is being written, so that no step of it takes long."""
        return self._turn is not None and self._turn.flows

    async def wait(self) -> None:
        """Until there is a step, or none will come."""
        if self._turn is not None:
            await self._turn.wait()

    def stop(self) -> None:
        """Take no more; from the loop."""
        if self._turn is not None:
            self._turn.handover.close()

    async def ended(self) -> None:
        """Until no thread is in the engine any more."""
        if self._turn is not None and self._turn.thread is not None:
            await asyncio.wrap_future(self._turn.thread)


class _Turn:
    """One generation."""

    def __init__(self, handover: Handover[Step]) -> None:
        self.handover = handover
        self.thread: Future[Any] | None = None
        self.pushed: Any = None
        self.flows = True
        self._waiting: deque[Step] = deque()
        self._failure: Exception | None = None

    def pull(self, steps: Iterator[Step]) -> None:
        """In a thread: wait for the engine, and hand on what it gives."""
        try:
            for step in steps:
                self.handover.put(step)
        except Interrupt:
            self.handover.close()
        except Exception as error:  # noqa: BLE001 - raised where the steps are read
            self._failure = error
        finally:
            _close(steps)
            self.handover.end()

    def give(self, step: Step | Exception | None) -> bool:
        """In the engine's thread: the next step, or the end; whether more is wanted."""
        if step is None or isinstance(step, Exception):
            self._failure = step
            self.handover.end()
            return False
        if len(self.handover) >= MOST_PUSHED:
            self.handover.close()
        return self.handover.offer(step)

    async def wait(self) -> None:
        """Until there is a step, or none will come."""
        if not self._waiting and self.flows:
            self._waiting.extend(await self.handover.take())
            self.flows = bool(self._waiting)

    def steps(self) -> Iterator[Step]:
        """What has come, and IDLE as long as more will."""
        try:
            while True:
                if self.handover.closed:
                    raise Interrupt
                if self._waiting:
                    step = self._waiting.popleft()
                    self.flows = step.finish is None
                    yield step
                elif self.flows:
                    yield IDLE
                elif self._failure is not None:
                    raise self._failure
                else:
                    return
        finally:
            self.flows = False
            self.handover.close()
            if self.pushed is not None:
                self.pushed.close()


def _close(steps: Any) -> None:
    with suppress(Interrupt):
        steps.close()
