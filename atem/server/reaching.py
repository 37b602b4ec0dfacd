"""Whether the engine can be reached, for whoever asks if the server is ready.

Rules: asked in a thread, once in some seconds however many want to know. A
reason is for anybody's eyes, so that it names no address; the log has it whole.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from ..engine import reach
from ..errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine import Engine

FRESH: Final = 3.0
"""Seconds for which an answer holds."""

log = logging.getLogger("atem.server")


class Reaching:
    """Asks ``engine``. ``clock`` gives seconds."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._reason: str | None = None
        self._until = float("-inf")
        self._asking = asyncio.Lock()

    async def reason(self) -> str | None:
        """Why it can't be reached; None if it can."""
        async with self._asking:
            if self._clock() >= self._until:
                self._reason = await asyncio.to_thread(self._ask)
                self._until = self._clock() + FRESH
            return self._reason

    def _ask(self) -> str | None:
        try:
            reach(self._engine)
        except EngineError as error:
            log.warning("the engine can't be reached: %s", error)
            status = getattr(error, "status", None)
            return f"The engine answers HTTP {status}." if status else "The engine doesn't answer."
        return None
