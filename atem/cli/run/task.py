"""One message to its end: events shown, an exit code.

Rules: whatever ends it, the engine stops at once, and so does what shows it.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, Protocol

from ...session import TaskEnd
from .. import exits

if TYPE_CHECKING:
    from ...session import Session, SessionEvent
    from ...session.events import EndReason

CODES: Final[dict[EndReason, int]] = {
    "done": exits.DONE,
    "empty": exits.FLAWED,
    "repeated": exits.FLAWED,
    "turns": exits.LIMIT,
    "cut": exits.LIMIT,
    "context": exits.LIMIT,
}


class Show(Protocol):
    """Shows the events of one message."""

    def __call__(self, event: SessionEvent, /) -> None:
        """Show an event."""

    def close(self) -> None:
        """Nothing more comes."""


def run_task(session: Session, text: str, show: Show) -> int:
    """Send ``text`` and show what comes; the exit code of how it ended."""
    code = exits.DONE
    with closing(show), closing(session.send(text)) as events:
        for event in events:
            show(event)
            if isinstance(event, TaskEnd):
                code = CODES[event.reason]
    return code
