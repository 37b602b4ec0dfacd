"""What a character of a turn is: framing, reasoning, part of a call, ...

Rules: an event's span and type decide. Of a call's events only what lies
outside the call matters; the call's own span says what became of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .. import wire
from ..parser.events import ContentDelta, Event, MessageStart, Problem, ReasoningDelta, TurnEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..messages import Span

FRAMING, REASONING, ANSWER, CALL, REJECTED, DISCARDED, LATE_REASONING, LATE_ANSWER = range(8)

MIN_HELD: Final = 6
"""Characters; shorter waits come with every "<" and, in reasoning, with every " to"."""

_MARKS: Final = "|".join(map(re.escape, (*wire.FRAMING, wire.BLOCK_OPEN, wire.BLOCK_CLOSE)))
_FRAMING: Final = re.compile(rf"[{wire.WHITESPACE}]*(?:(?:{_MARKS})[{wire.WHITESPACE}]*)+")


def parts(event: Event, text: str, read: int) -> Iterator[tuple[int, Span]]:
    """The kinds of an event's own ``text``, the later over the earlier.

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
    elif isinstance(event, Problem | TurnEnd) and not _is_framing(text):
        yield DISCARDED, span
    elif start < end:
        yield DISCARDED, span
        for found in _FRAMING.finditer(text):
            yield FRAMING, (start + found.start(), start + found.end())


def _is_framing(text: str) -> bool:
    return not text.strip(wire.WHITESPACE) or _FRAMING.fullmatch(text) is not None
