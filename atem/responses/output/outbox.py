"""Where events are numbered.

Rules: one outbox for each response, so that sequence numbers have no gaps; it
holds events until they are taken, and forgets them.
"""

from __future__ import annotations

from typing import Any


class Outbox:
    """Events in order. ``sequence`` is the number of the next one; the first is 0."""

    __slots__ = ("_events", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self._events: list[dict[str, Any]] = []

    def put(self, kind: str, **fields: Any) -> None:
        """Add the event ``response.{kind}``."""
        number = self.sequence
        self._events.append({"type": f"response.{kind}", "sequence_number": number, **fields})
        self.sequence = number + 1

    def take(self) -> list[dict[str, Any]]:
        """The events since the last time."""
        events, self._events = self._events, []
        return events
