"""The events of a session as JSON lines: the schema of docs/agent.md.

Rules: the parser's events are the lines of ``atem parse``; a session's own have
every field under its own name.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from ...messages import RejectedCall, ToolCall
from ...session import Feedback, TaskEnd, ToolEnd, ToolStart, TurnStart
from ...trace.records import call_record, event_record, line
from .. import output

if TYPE_CHECKING:
    from ...session import SessionEvent

TYPES: Final[dict[type, str]] = {
    TurnStart: "turn_start",
    ToolStart: "tool_start",
    ToolEnd: "tool_end",
    Feedback: "feedback",
    TaskEnd: "task_end",
}


class Lines:
    """Shows the events that it is called with."""

    def __call__(self, event: SessionEvent) -> None:
        """Write an event as one line."""
        output.write(line(record(event)))

    def close(self) -> None:
        """Each line has its end."""


def record(event: SessionEvent) -> dict[str, Any]:
    """An event as an object: ``type``, then its fields."""
    if isinstance(event, TurnStart | ToolStart | ToolEnd | Feedback | TaskEnd):
        values = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
        return {"type": TYPES[type(event)], **values}
    return event_record(event)


def _plain(value: Any) -> Any:
    return call_record(value) if isinstance(value, ToolCall | RejectedCall) else value
