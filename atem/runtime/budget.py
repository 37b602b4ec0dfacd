"""A budget for reasoning: how long the channel to ``self`` stays open (wire_format 8).

Rules: counted are the tokens strictly inside bodies to ``self``, over all
messages of the turn. At the limit the engine writes ``<|eom|>``, the next
header and ``to=user``; whatever the model does then is its own, but a channel
to ``self`` that it opens again is closed at once. Framing is known by the ids
of special tokens, recipients by the text between them; declared tools are not
known here, so a bare header to a tool counts as one as soon as its
``<|message|>`` is a real special token (wire_format 5.3): a call is not cut in
two. Its own few tokens stay counted.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final

from .. import wire
from ..errors import TokenError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tokenizer import Tokenizer

FORCED: Final = (wire.EOM, wire.START, f"{wire.ASSISTANT} {wire.TO}{wire.USER}", wire.MESSAGE)
"""What closes the reasoning and opens the answer."""

_WS: Final = f"[{wire.WHITESPACE}]*"
_TO_SELF: Final = re.compile(f"{_WS}(?:{wire.ASSISTANT}{_WS})?{wire.TO}{wire.SELF}{_WS}".encode())
_NO_TOOL: Final = f"(?:{wire.SELF}|{wire.USER}|{wire.COMMENTARY}){_WS}"
_BARE: Final = re.compile(
    f"[{wire.WHITESPACE}]{wire.TO}(?!{_NO_TOOL}\\Z)[^<{wire.WHITESPACE}]+{_WS}\\Z".encode()
)


class ReasoningBudget:
    """Says when the engine must write, and what.

    ``next`` is the id that has to come now, None while the model is free;
    every token of the output goes to ``record``. ``count`` is how many there
    were in reasoning, ``run`` what is written at the limit. The prompt may end
    anywhere in a header or body; what it holds is not counted. Without
    ``answers`` only the reasoning is closed, and what follows is another's to
    decide. Raises Unsupported if ``tokenizer`` lacks the special tokens that have to be written.
    """

    def __init__(
        self,
        limit: int,
        tokenizer: Tokenizer,
        prompt_ids: Sequence[int],
        *,
        answers: bool = True,
    ) -> None:
        self._limit = limit
        run = _forced_ids(tokenizer)
        self.run = run if answers else run[:1]
        self._channel = _Channel(tokenizer)
        self._due: deque[int] = deque()
        self.count = 0
        for token_id in opened(prompt_ids, tokenizer):
            self._channel.take(token_id)
        self._close_if_spent()

    @property
    def spent(self) -> bool:
        """Whether nothing is left of it."""
        return self.count >= self._limit

    @property
    def next(self) -> int | None:
        """The id to write now, or None."""
        return self._due[0] if self._due else None

    def record(self, token_id: int) -> None:
        """``token_id`` was written; it is ``next`` if there was one."""
        self.count += self._channel.take(token_id)
        if self._due:
            self._due.popleft()
        else:
            self._close_if_spent()

    def _close_if_spent(self) -> None:
        if self._channel.reasoning and self.spent:
            self._due.extend(self.run)


class _Channel:
    """Where in a turn the tokens are; ``reasoning`` is true inside a body to ``self``."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._markers = {tokenizer.special_id(text): text for text in wire.FRAMING}
        self.reasoning = False
        self._header = True  # a turn begins behind the header's role word (wire_format 3)
        self._text = wire.ASSISTANT.encode()

    def take(self, token_id: int) -> bool:
        """Whether ``token_id`` is one strictly inside a body to ``self``."""
        marker = self._markers.get(token_id)
        if marker == wire.MESSAGE and self._header:
            self._enter(reasoning=_TO_SELF.fullmatch(self._text) is not None)
        elif marker == wire.MESSAGE and self.reasoning and _BARE.search(self._text):
            self._enter(reasoning=False)
        elif marker == wire.START or marker in wire.TERMINATORS:
            self._enter(header=marker == wire.START)
        else:
            self._text = (self._text + self._bytes(token_id))[-wire.MAX_HEADER :]
            return self.reasoning
        return False

    def _enter(self, *, header: bool = False, reasoning: bool = False) -> None:
        self._header, self.reasoning = header, reasoning
        self._text = b" " if reasoning else b""  # a bare header may stand at the very beginning

    def _bytes(self, token_id: int) -> bytes:
        try:
            return self._tokenizer.token_bytes(token_id)
        except TokenError:  # an id of the padding behind the vocabulary
            return b"\xff"


def opened(prompt_ids: Sequence[int], tokenizer: Tokenizer) -> Sequence[int]:
    """The ids from the last ``<|start|>`` on, unless that message is over."""
    start = tokenizer.special_id(wire.START)
    ends = [tokenizer.special_id(text) for text in wire.TERMINATORS]
    for place in range(len(prompt_ids) - 1, -1, -1):
        if prompt_ids[place] in ends:
            break
        if prompt_ids[place] == start:
            return prompt_ids[place:]
    return ()


def _forced_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    missing = [text for text in _SPECIALS if tokenizer.special_id(text) is None]
    if missing:
        raise Unsupported(
            f"reasoning_budget= needs {', '.join(missing)} as special tokens, which this tokenizer "
            "lacks; leave it out, or use a current export of the checkpoint"
        )
    ids: list[int] = []
    for text in FORCED:
        special = tokenizer.special_id(text)
        ids += tokenizer.encode(text) if special is None else [special]
    return tuple(ids)


_SPECIALS: Final = (wire.EOM, wire.START, wire.MESSAGE)
