"""The message that is being written: opened, spoken in, closed.

Rules: the only place that emits message and text events. It knows recipients
and joins reasoning bodies (wire_format 3.3); where a message ends it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import ContentDelta, MessageEnd, MessageStart, ReasoningDelta

if TYPE_CHECKING:
    from .emitter import Emitter
    from .token_clock import TokenClock


class OpenMessage:
    """Emits the events of one message after the other.

    ``is_open`` says whether one is open, ``recipient`` to whom, ``last`` is
    the last character said in it ("" at its beginning), ``flows``
    whether reasoning has begun in it, so that its next text is a delta and no more.
    """

    __slots__ = ("_clock", "_joins", "_out", "_thought", "_tokens_before", "flows", "is_open",
                 "last", "recipient")  # fmt: skip

    def __init__(self, out: Emitter, clock: TokenClock) -> None:
        self._out = out
        self._clock = clock
        self.is_open = False
        self.recipient: str | None = None
        self.last = ""
        self._tokens_before = 0
        self._thought = False  # something was said in an earlier reasoning body
        self.flows = False
        self._joins = False  # the next reasoning text continues earlier reasoning

    def open(self, recipient: str | None, body: int) -> None:
        """Open a message to ``recipient`` whose body begins at ``body``."""
        self._out.put(MessageStart, recipient, end=body)
        self.is_open = True
        self.recipient = recipient
        self.last = ""
        self.flows = False
        self._joins = self._thought
        self._tokens_before = self._clock.before(body)

    def say(self, text: str, end: int) -> None:
        """Answer text up to ``end``. Text without a header opens a message of its own."""
        if not text:
            return
        if not self.is_open:
            self.open(None, end - len(text))
        self._out.put(ContentDelta, text, end=end)

    def think(self, text: str, end: int) -> None:
        """Reasoning text up to ``end``."""
        if not text:
            return
        if self._joins:
            self._out.put(ReasoningDelta, "\n")
            self._joins = False
        self._thought = self.flows = True
        self.last = text[-1]
        self._out.put(ReasoningDelta, text, end=end)

    def close(self, terminator: str | None, body_end: int) -> None:
        """Close the message, if one is open. Its body ended at ``body_end``."""
        if not self.is_open:
            return
        tokens = None
        if self._clock.running:
            tokens = self._clock.before(body_end) - self._tokens_before
        end = body_end + len(terminator or "")
        self._out.put(MessageEnd, terminator, tokens, end=end)
        self.is_open = False
        self.recipient = None
