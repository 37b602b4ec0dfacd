"""What a character of a turn is: framing, reasoning, part of a call, ...

Rules: an event's span and type decide. Of a call's events only what lies
outside the call matters; the call's own span says what became of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .. import wire
from ..parser.events import (
    ArgumentsDelta,
    CallEnd,
    CallRejected,
    CallStart,
    ContentDelta,
    Event,
    MessageStart,
    Problem,
    ReasoningDelta,
    TurnEnd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..messages import Span

FRAMING: Final = "framing"
REASONING: Final = "reasoning"
ANSWER: Final = "answer"
CALL: Final = "call"
REJECTED: Final = "rejected"
DISCARDED: Final = "discarded"
LATE_REASONING: Final = "reasoning late"
LATE_ANSWER: Final = "answer late"
FORMING: Final = "forming"
"""Text of a call that is not decided yet."""

MIN_HELD: Final = 6
"""Characters; shorter waits come with every "<" and, in reasoning, with every " to"."""

_MARKS: Final = "|".join(map(re.escape, (*wire.FRAMING, wire.BLOCK_OPEN, wire.BLOCK_CLOSE)))
_FRAMING: Final = re.compile(rf"[{wire.WHITESPACE}]*(?:(?:{_MARKS})[{wire.WHITESPACE}]*)+")


def parts(event: Event, text: str, read: int) -> Iterator[tuple[str, Span]]:
    """The kinds of an event's own ``text`` and of the call it decides, the later over the earlier.

    ``read`` is how many characters had been read when it came.
    """
    start, end = span = event.start, event.end
    late = read - start >= MIN_HELD
    if isinstance(event, MessageStart):
        yield FRAMING, span
    elif isinstance(event, ReasoningDelta):
        yield (LATE_REASONING if late else REASONING), span
    elif isinstance(event, ContentDelta):
        yield (LATE_ANSWER if late else ANSWER), span
    elif start < end:
        yield _rest(event, text), span
        if not isinstance(event, Problem | TurnEnd) or _FRAMING.fullmatch(text):
            for found in _FRAMING.finditer(text):
                yield FRAMING, (start + found.start(), start + found.end())
    if isinstance(event, CallEnd):
        yield CALL, event.call.span
    elif isinstance(event, CallRejected) and event.rejected is not None:
        yield REJECTED, event.rejected.span


def _rest(event: Event, text: str) -> str:
    """What is neither a mark nor a message's text."""
    if isinstance(event, CallStart | ArgumentsDelta):
        return FORMING
    return DISCARDED if text.strip(wire.WHITESPACE) else FRAMING
