"""An engine whose generation can be stopped from outside.

Rules: whoever reads the steps is in a thread and may be deep in a parser that
holds everything back; so the stop is checked between steps, and ends the
reading by an exception that nobody takes for an engine's failure. Iterators
that can be closed while another thread waits in them are closed at once.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ..engine import close

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine import Engine, EngineInfo, Request, Step
    from ..tokenizer import Tokenizer


class Interrupt(BaseException):
    """Nobody wants the rest."""


class Interruptible:
    """``engine`` for one reply; an :class:`~atem.engine.Engine` whose ``close`` is not its end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopped = False
        self._lock = threading.Lock()
        self._steps: Any = None

    @property
    def info(self) -> EngineInfo:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        """See :class:`~atem.engine.Engine`."""
        return self._engine.tokenizer

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`. Raises Interrupt once it was stopped."""
        return self.until_stopped(self.begin(request))

    def begin(self, request: Request) -> Any:
        """The engine's own steps, which ``cut`` closes. Raises Interrupt once it was stopped."""
        self._check()
        steps = self._engine.generate(request)
        with self._lock:
            self._steps = steps
        return steps

    def close(self) -> None:
        """Stop; the engine stays open for others."""
        self.stop()

    def stop(self) -> None:
        """End what is being generated at its next step; from any thread, and without waiting."""
        self._stopped = True

    def cut(self) -> None:
        """After ``stop``: wake whoever waits in the engine for a step. This may take a moment."""
        with self._lock:
            steps = self._steps
        # A generator that another thread is in can't be closed; it ends at its next step.
        if steps is not None and not isinstance(steps, GeneratorType):
            _close(steps)

    def until_stopped(self, steps: Iterator[Step]) -> Iterator[Step]:
        """``steps``; they raise Interrupt once this was stopped."""
        try:
            while (step := self._next(steps)) is not None:
                yield step
        finally:
            with self._lock:
                self._steps = None
            _close(steps)

    def _next(self, steps: Iterator[Step]) -> Step | None:
        try:
            return next(steps, None)
        except Exception:
            self._check()  # closed from outside, it may end in any way
            raise
        finally:
            self._check()

    def _check(self) -> None:
        if self._stopped:
            raise Interrupt


def _close(steps: Any) -> None:
    with suppress(ValueError):  # another thread is inside
        close(steps)
