"""How long a task may go on, and when it has gone wrong.

Rules: counts, never a clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from ..errors import OptionError
from ..messages import ToolCall
from .events import TaskEnd

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..messages import RejectedCall
    from ..parser.fold import Turn
    from .events import Outcome


CUT_OFF: Final = (
    "a turn was cut off: at its limit of tokens, at the end of the context, inside its framing, "
    "or by the engine"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one ``send``. Raises OptionError unless each is a whole number above 0.

    ``turns``: how often the model is asked. ``tokens``: how long each of its
    turns may be. ``failures``: how often the same call may fail. ``cuts``: how
    many cut turns with a call in them are answered before it ends.
    """

    turns: int = 24
    tokens: int = 8192
    failures: int = 3
    cuts: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise OptionError(f"{field.name}={value!r}; it is a whole number above 0")


class Tally:
    """What one ``send`` has used of its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures: Counter[Hashable] = Counter()
        self._repeated = ""
        self._cuts = 0

    def answered(self, call: ToolCall, outcome: Outcome) -> None:
        """A call was answered; one that works starts from nought again."""
        if outcome == "done":
            self._failures.pop(_key(call), None)
        elif outcome != "cut":  # cut turns have a limit of their own
            self._failed(call, call.wire_name)

    def rejected(self, call: RejectedCall) -> None:
        """A call was rejected."""
        self._failed(call, call.raw_name)

    def _failed(self, call: ToolCall | RejectedCall, name: str) -> None:
        key = _key(call)
        self._failures[key] += 1
        if self._failures[key] >= self._limits.failures:
            self._repeated = name

    def end(self, turn: Turn) -> TaskEnd | None:
        """Why nothing comes after ``turn``, whose calls were answered; None if it goes on."""
        self._cuts += not turn.complete
        called = turn.calls or turn.rejected
        if self._repeated:
            times = self._limits.failures
            return TaskEnd("repeated", f"the same call of {self._repeated!r} failed {times} times")
        if not turn.complete and (self._cuts > self._limits.cuts or not called):
            return TaskEnd("cut", CUT_OFF)
        if called:
            return None
        if turn.content:
            return TaskEnd("done", "the model answered")
        return TaskEnd("empty", "the model ended its turn without an answer")

    def out_of_turns(self) -> TaskEnd:
        """The end after the last turn allowed."""
        return TaskEnd("turns", f"the model was asked {self._limits.turns} times without an end")


def _key(call: ToolCall | RejectedCall) -> Hashable:
    """What makes two calls the same."""
    if isinstance(call, ToolCall):
        return call.wire_name, call.arguments_json
    return call.reason, call.raw_name, call.text
