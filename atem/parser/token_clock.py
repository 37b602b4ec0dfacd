"""How many tokens begin before a position.

Rules: counts only; which tokens are counted is the input's business.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

_KEEP: Final = 4096


class TokenClock:
    """Counts the tokens of a stream by the position of their first character.

    ``running`` is False until a token with a boundary of its own has been seen
    (plain text has none). Starts before ``forget`` positions are summed up, so
    that an answer of any length takes bounded memory.
    """

    __slots__ = ("_gone", "_starts", "running")

    def __init__(self) -> None:
        self.running = False
        self._starts = array("Q")
        self._gone = 0

    def tick(self, position: int, settled: int) -> None:
        """A token begins at ``position``; nobody will ask about positions below ``settled``."""
        self.running = True
        self._starts.append(position)
        if len(self._starts) >= _KEEP:
            gone = bisect_left(self._starts, settled)
            self._gone += gone
            del self._starts[:gone]

    def before(self, position: int) -> int:
        """The number of tokens that begin before ``position``."""
        return self._gone + bisect_left(self._starts, position)
