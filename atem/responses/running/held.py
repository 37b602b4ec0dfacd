"""An answer that must fit a format is held until it is known to fit, but where a grammar makes it.

Rules: nothing that follows it overtakes it, so that the order is the model's. A
call shows that it was no answer, and lets it go (responses.md 1.8: calls first,
the format on the last message).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...parser.events import CallEnd, ContentDelta

if TYPE_CHECKING:
    from ...parser.events import Event


class Told(NamedTuple):
    """An event of the parser, with the log-probabilities of its tokens."""

    event: Event
    logprobs: list[dict[str, Any]]


class Held:
    """Passes events on, or holds them; ``holds`` says whether it ever does."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        self._waiting: list[Told] = []

    def take(self, told: Told) -> list[Told]:
        """What may be passed on now."""
        if isinstance(told.event, CallEnd):
            return [*self.release(), told]
        if self.holds and (self._waiting or isinstance(told.event, ContentDelta)):
            self._waiting.append(told)
            return []
        return [told]

    def release(self) -> list[Told]:
        """All that is held."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def drop(self) -> list[Told]:
        """All that is held, but for the answer."""
        return [told for told in self.release() if not isinstance(told.event, ContentDelta)]
