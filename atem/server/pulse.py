"""What a silent stream of the Responses API sends, and the numbers of all its events.

Rules: never before ``response.in_progress``; always numbered, so that numbers
have no gaps and none comes twice. A comment is no event and no sign of life to
some clients, so it is not the default (responses.md 1.7, 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..responses.outcome import Event
    from .reply import Reply
    from .settings import Heartbeat

QUEUED = ("response.queued", "response.in_progress")
"""Repeated as they were: by then, nothing but the stream's numbers has changed."""


class Pulse:
    """One response's numbering; a heartbeat takes a number too."""

    def __init__(self, kind: Heartbeat) -> None:
        self._kind = kind
        self._next = 0
        self._state: Event | None = None

    def numbered(self, events: list[Event]) -> list[Event]:
        """``events`` with the numbers that they go out with."""
        first = self._next
        self._next += len(events)
        for event in events:
            if event["type"] in QUEUED:
                self._state = event
        return [{**event, "sequence_number": first + at} for at, event in enumerate(events)]

    def beat(self) -> list[Event]:
        """The events that say: still here."""
        if self._state is None or self._kind not in ("in_progress", "keepalive"):
            return []
        body = self._state if self._kind == "in_progress" else {"type": "keepalive"}
        return self.numbered([body])


async def steady(
    reply: Reply, kind: Heartbeat = "in_progress"
) -> AsyncGenerator[list[Event], None]:
    """The events of a reply with heartbeats of a kind among them, and none if they are off.

    An empty list says that it has been silent and that there is no event for
    that. Whoever stops reading leaves the reply.
    """
    settings = reply.service.settings
    pulse = Pulse(kind)
    silence = None if settings.heartbeat == "off" else settings.heartbeat_seconds
    try:
        while (batch := await reply.next(silence)) is not None:
            yield pulse.numbered(batch) or pulse.beat()
    finally:
        reply.leave()
