"""An engine's steps, pulled by a thread and taken on the event loop.

Rules: a thread does no more than wait for the engine, so that hundreds of them
don't stand in each other's way; what is made of a step is made on the loop. The
loop never closes an iterator, which may take long. One that can be closed while
another thread waits in it is closed at once, a generator ends at its next step.

An engine with a thread of its own needs no other: its iterator has a method
``push(give)``, and from then on the engine calls ``give(step)`` for each step
and ``give(None)``, or with an exception, at the end. ``give`` never waits, and
says whether more is wanted; the iterator is closed too when nothing more is.
"""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Final

from ..engine import close
from .handover import Handover, Interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine import Step
    from .handover import Waker

MOST: Final = 64
"""Steps between thread and loop."""


class Feed:
    """The ``steps`` of one turn; ``patience`` is seconds that the engine waits for who takes them.

    ``closed``: nobody takes them any more, because nobody wants them or it took too long.
    """

    def __init__(self, steps: Iterator[Step], patience: float, waker: Waker) -> None:
        self._steps = steps
        self._handover: Handover[Step] = Handover(MOST, patience, waker)
        self._failure: Exception | None = None

    @property
    def closed(self) -> bool:
        """Whether nobody takes any more."""
        return self._handover.closed

    def run(self) -> None:
        """In a thread: have the engine push its steps, or wait for each and hand it on."""
        push = getattr(self._steps, "push", None)
        if self.closed:
            close(self._steps)
        elif push is not None:
            push(self._give)
        else:
            self._pull()

    async def take(self) -> list[Step]:
        """Those that came, waiting for one; none at the end. Raises what the engine raised."""
        steps = await self._handover.take()
        if not steps and not self.closed and self._failure is not None:
            raise self._failure
        return steps

    def close(self) -> None:
        """On the loop: take no more."""
        self._handover.close()

    def cut(self) -> None:
        """In a thread, once it is closed: wake who waits in the engine for a step."""
        if not isinstance(self._steps, GeneratorType):
            close(self._steps)

    def _pull(self) -> None:
        try:
            for step in self._steps:
                self._handover.put(step)
        except Interrupt:
            pass
        except Exception as error:  # noqa: BLE001 - raised where the steps are taken
            self._failure = error
        finally:
            self._handover.end()
            close(self._steps)

    def _give(self, step: Step | Exception | None) -> bool:
        """In the engine's thread: the next step, or the end; whether more is wanted."""
        if step is None or isinstance(step, Exception):
            self._failure = step
            self._handover.end()
            return False
        return self._handover.offer(step)
