"""The list of events in the making, with spans that can't leave a gap.

Rules: each event begins where the one before ended, and none ends before it
begins. The scanner's quick path makes its one event by hand and moves ``mark``
likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import Event

new_event = tuple.__new__
"""Builds a named tuple of fields that are known to fit, at half the price of calling its class."""


class Emitter:
    """Collects events. ``mark`` is the position up to which the input is accounted for."""

    __slots__ = ("events", "mark")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.mark = 0

    def put(self, kind: type[Any], *fields: Any, end: int = 0) -> None:
        """Emit ``kind(*fields)`` with a span up to ``end``; an empty one if that lies behind."""
        start = self.mark
        if end > start:
            self.mark = end
        else:
            end = start
        self.events.append(new_event(kind, (*fields, start, end)))

    def take(self) -> list[Event]:
        """Hand over what was collected."""
        events, self.events = self.events, []
        return events
