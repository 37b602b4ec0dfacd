"""How many tokens a turn has, and how many of them are reasoning.

Rules: ids are counted where there are ids; text without ids is encoded when the
turn is over, and where there is no tokenizer either, the engine's own counts are
taken. A message's header and terminator count as the message does.
Source: responses.md 1.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import wire
from ...parser.events import MessageEnd, MessageStart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...engine import Counted, Step
    from ...parser.events import Event
    from ...parser.fold import Turn
    from ...tokenizer import Tokenizer
    from ..output.usage import Usage


class Meter:
    """Counts one turn into ``usage``."""

    def __init__(self, usage: Usage, tokenizer: Tokenizer | None) -> None:
        self._usage = usage
        self._tokenizer = tokenizer
        self._recipient: str | None = None
        self._since = 0
        self._ids = False
        self._counted: Counted | None = None

    def step(self, step: Step) -> None:
        """A step of the engine came."""
        count = len(step.ids)
        self._ids = self._ids or count > 0
        self._since += count
        self._usage.output += count
        self._usage.cached += step.cached_tokens or 0
        self._counted = step.counted or self._counted

    def saw(self, events: Iterable[Event]) -> None:
        """The parser's events of that step: tokens up to a message's end belong to it."""
        for event in events:
            if isinstance(event, MessageStart):
                self._recipient = event.recipient
            elif isinstance(event, MessageEnd):
                self._usage.reasoning += self._since if self._recipient == wire.SELF else 0
                self._since = 0
                self._recipient = None

    def end(self, turn: Turn, text: str) -> None:
        """The turn is over; ``text`` is all of it, where there were no ids."""
        if self._tokenizer is None:
            self._take(self._counted)
        elif not self._ids:
            self._usage.output += len(self._tokenizer.encode(_spelled(text)))
            self._usage.reasoning += len(self._tokenizer.encode(_spelled(turn.reasoning)))

    def _take(self, counted: Counted | None) -> None:
        """The engine's own counts: of the prompt, and of what came without ids."""
        if counted is None:
            return
        self._usage.input += counted.prompt
        if not self._ids:
            self._usage.output += counted.output
            self._usage.reasoning += min(counted.reasoning or 0, counted.output)


def _spelled(text: str) -> str:
    """``text`` without half characters, which no tokenizer can encode."""
    return text.encode("utf-8", "replace").decode()
