"""The header of a message, read as far as it goes (wire_format 3, 3.1).

Rules: a header object sees the text behind ``<|start|>`` (or behind the
beginning of the stream, or from a bare ``to=``) piece by piece, each
character once, and says whether it still can be a header. What a header
means for the message before it is not its business.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from .. import wire

_BLANKS: Final = re.compile(f"[{wire.WHITESPACE}]*")
_RECIPIENT: Final = re.compile(f"[^{wire.WHITESPACE}<]*")


class Phase(Enum):
    """How far a header has been read."""

    __hash__ = object.__hash__  # Enum's own is a Python call

    UNFRAMED = "beginning of a framed stream"
    IMPLICIT = "beginning of the stream"
    OPENING = "after a first <|start|>"
    FRAMED = "after <|start|>"
    ROLE = "after the role"
    RECIPIENT = "in the recipient"
    TAIL = "after the recipient"
    DONE = "whole"
    OTHER_ROLE = "header of another role"
    FAILED = "not a header"


WORDS: Final[dict[Phase, dict[str, Phase]]] = {
    Phase.UNFRAMED: {},
    Phase.IMPLICIT: {wire.TO: Phase.RECIPIENT},
    Phase.OPENING: {wire.ASSISTANT: Phase.ROLE, wire.TO: Phase.RECIPIENT},
    Phase.FRAMED: {
        wire.ASSISTANT: Phase.ROLE,
        wire.TO: Phase.RECIPIENT,
        **dict.fromkeys(wire.OTHER_ROLES, Phase.OTHER_ROLE),
    },
    Phase.ROLE: {wire.TO: Phase.RECIPIENT},
    Phase.TAIL: {},
}
"""The words that may follow in each phase, after whitespace, and the phase behind them."""

_PREFIXES: Final = {
    phase: frozenset(word[:size] for word in words for size in range(1, len(word) + 1))
    for phase, words in WORDS.items()
}

MARKERS: Final[dict[Phase, dict[str, Phase]]] = {
    Phase.UNFRAMED: {wire.START: Phase.OPENING},
    Phase.IMPLICIT: {wire.MESSAGE: Phase.DONE, wire.START: Phase.OPENING},
    Phase.OPENING: {wire.MESSAGE: Phase.DONE},
    Phase.FRAMED: {wire.MESSAGE: Phase.DONE},
    Phase.ROLE: {wire.MESSAGE: Phase.DONE},
    Phase.RECIPIENT: {wire.MESSAGE: Phase.DONE},
    Phase.TAIL: {wire.MESSAGE: Phase.DONE},
}
"""The markers that may follow in each phase."""

SETTLED: Final = frozenset((Phase.DONE, Phase.OTHER_ROLE, Phase.FAILED))


class Header:
    """One header in the making.

    ``text`` is what was read, markers included; ``recipient`` is what stands
    behind ``to=``, None without one; ``start`` is its position in the stream.
    ``confirmed`` says that enough was read to make a terminator before it
    structural (wire_format 5.1), whatever became of the header after that.
    ``limit`` bounds the header with its ``<|message|>``.
    """

    __slots__ = ("_word", "confirmed", "limit", "phase", "recipient", "start", "text")

    def __init__(self, phase: Phase, start: int, limit: int, text: str = "") -> None:
        self.phase = phase
        self.start = start
        self.text = text
        self.recipient: str | None = None
        self.confirmed = False
        self._word = ""
        self.limit = limit

    @classmethod
    def bare(cls, start: int, limit: int) -> Header:
        """A header that began with ``to=`` in the middle of reasoning (wire_format 5.3)."""
        header = cls(Phase.RECIPIENT, start, limit, wire.TO)
        header.recipient = ""
        return header

    def take(self, text: str, pos: int, end: int, *, only_confirm: bool = False) -> int:
        """Read ``text[pos:end]``; the position behind the last character that fits.

        With ``only_confirm`` reading stops where the header is confirmed.
        """
        while pos < end and self.phase not in SETTLED and not (only_confirm and self.confirmed):
            if self.phase is Phase.RECIPIENT:
                stop = self._recipient(text, pos, end)
            else:
                stop = self._blanks_or_word(text, pos, end)
            self.text += text[pos:stop]
            pos = stop
            if len(self.text) > self.limit - len(wire.MESSAGE):
                self.phase = Phase.FAILED
        return pos

    def marker(self, marker: str) -> bool:
        """Read one framing marker; False if it doesn't fit, and the header has failed."""
        nothing_yet = self._word or (self.phase is Phase.RECIPIENT and not self.recipient)
        fits = not nothing_yet and len(self.text) + len(marker) <= self.limit
        following = MARKERS.get(self.phase, {}).get(marker) if fits else None
        self.phase = following or Phase.FAILED
        if following is None:
            return False
        self.text += marker
        self.confirmed = following is Phase.DONE
        return True

    def _blanks_or_word(self, text: str, pos: int, end: int) -> int:
        if not self._word and text[pos] in wire.WHITESPACE:
            return self._run(_BLANKS, text, pos, end)
        word = self._word + text[pos]
        if word not in _PREFIXES[self.phase]:
            self.phase = Phase.FAILED
            return pos
        following = WORDS[self.phase].get(word)
        self._word = word if following is None else ""
        if following is not None:
            self.phase = following
            self.confirmed = True
            self.recipient = "" if following is Phase.RECIPIENT else None
        return pos + 1

    def _recipient(self, text: str, pos: int, end: int) -> int:
        stop = self._run(_RECIPIENT, text, pos, end)
        if stop > pos:
            self.recipient = (self.recipient or "") + text[pos:stop]
        elif self.recipient and text[pos] in wire.WHITESPACE:
            self.phase = Phase.TAIL
        else:
            self.phase = Phase.FAILED
        return stop

    def _run(self, pattern: re.Pattern[str], text: str, pos: int, end: int) -> int:
        """The end of the run of ``pattern`` at ``pos``; one past the limit is enough of it."""
        room = self.limit - len(wire.MESSAGE) + 1 - len(self.text)
        found = pattern.match(text, pos, min(end, pos + room))
        return pos if found is None else found.end()
