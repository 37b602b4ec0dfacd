"""The events of a session for a person: reasoning dim, the answer as it comes, calls in one line.

Rules: text of the model and of tools goes through ``visible`` or ``one_line``.
The answer alone is written to standard output, so that it can be piped. On
standard error the model's reasoning stands behind a bar on every line, and our
own lines begin with a mark that it can't write there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ...parser.events import ContentDelta, MessageEnd, Problem, ReasoningDelta, TurnEnd
from ...session import Feedback, TaskEnd, ToolEnd, ToolStart
from ...tools.excerpt import COUNTED, shorten
from .. import output
from ..ending import complain
from ..screen import one_line, visible, wants_colour

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...messages import ToolCall
    from ...session import SessionEvent

BAR: Final = "| "
CALL: Final = "> "
RESULT: Final = "< "
NOT_RUN: Final = "! "

MAX_SHOWN: Final = 200
"""Characters of a call, or of its result."""

QUIET: Final = ("undecided",)
"""Problems that only say that something is still being written."""

DIM: Final = "\x1b[2m{}\x1b[22m"


class Transcript:
    """Shows the events that it is called with."""

    def __init__(self) -> None:
        dim = wants_colour(terminal=sys.stderr is not None and sys.stderr.isatty())
        self._style = DIM if dim else "{}"
        self._end: Callable[[], None] | None = None
        self._fresh = True

    def __call__(self, event: SessionEvent) -> None:
        """Show an event."""
        show = _SHOWN.get(type(event))
        if show is not None:
            show(self, event)

    def reasoning(self, event: ReasoningDelta) -> None:
        """Dim, with a bar before each line."""
        self._end = self._end_note
        for line in visible(event.text).splitlines(keepends=True):
            self._note((BAR if self._fresh else "") + line)
            self._fresh = line.endswith("\n")

    def answer(self, event: ContentDelta) -> None:
        """As it is, on standard output."""
        self._end = self._end_answer
        self._fresh = event.text.endswith("\n")  # first: writing may be interrupted
        output.write(visible(event.text).encode())

    def message_end(self, _: object) -> None:
        """Whatever was being written ends with its line."""
        self.close()

    def close(self) -> None:
        """End the line, wherever it was interrupted."""
        end, self._end = self._end, None
        if end is not None and not self._fresh:
            end()
        self._fresh = True

    def started(self, event: ToolStart) -> None:
        """The call that now runs."""
        self._line(CALL, _written(event.call))

    def ended(self, event: ToolEnd) -> None:
        """What came of it, or that it did not run."""
        if event.outcome in ("done", "failed"):
            self._line(RESULT, event.text)
        else:
            self._line(NOT_RUN, f"{_written(event.call)}: {event.text}")

    def feedback(self, event: Feedback) -> None:
        """Why a call was rejected."""
        self._line(NOT_RUN, event.text)

    def problem(self, event: Problem) -> None:
        """What a person may want to know."""
        if event.code not in QUIET:
            self._line(NOT_RUN, f"{event.code}: {event.message}")

    def over(self, event: TaskEnd) -> None:
        """Why it is over, unless there is an answer."""
        if event.reason != "done":
            complain("atem-run", event.text)

    def _line(self, mark: str, text: str) -> None:
        self.close()
        self._note(f"{mark}{one_line(shorten(text.strip(), MAX_SHOWN, gap=COUNTED))}\n")

    def _note(self, text: str) -> None:
        output.note(self._style.format(text))

    def _end_note(self) -> None:
        self._note("\n")

    def _end_answer(self) -> None:
        output.write(b"\n")


def _written(call: ToolCall) -> str:
    return f"{call.wire_name} {call.arguments_json}"


_SHOWN: Final[dict[type, Callable[[Any, Any], None]]] = {
    ReasoningDelta: Transcript.reasoning,
    ContentDelta: Transcript.answer,
    MessageEnd: Transcript.message_end,
    TurnEnd: Transcript.message_end,
    Problem: Transcript.problem,
    ToolStart: Transcript.started,
    ToolEnd: Transcript.ended,
    Feedback: Transcript.feedback,
    TaskEnd: Transcript.over,
}
