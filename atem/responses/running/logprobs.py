"""Which log-probabilities belong to a piece of the answer.

Rules: a token belongs to the text that begins where it begins, in characters of
the decoded stream, which is how the parser's events say where they stand. A token
that ends a character others began counts at that character.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ...engine import Step
    from ...parser.events import ContentDelta
    from ...tokenizer import Tokenizer


class _Entry(NamedTuple):
    start: int
    record: dict[str, Any]


class Logprobs:
    """Collects the numbers of each step and gives them out with the text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._entries: deque[_Entry] = deque()
        self._position = 0

    def step(self, step: Step) -> None:
        """A step of the engine came."""
        for place, token_id in enumerate(step.ids if step.logprobs else ()):
            assert step.logprobs is not None
            top = step.top_logprobs[place] if step.top_logprobs else ()
            record = self._record(token_id, step.logprobs[place])
            record["top_logprobs"] = [self._record(*each) for each in top]
            self._entries.append(_Entry(self._position, record))
        self._position += len(self.text(step))

    def text(self, step: Step) -> str:
        """The text of a step; of one that leaves the decoding to the reader, whole characters."""
        if step.pieces is not None:
            return "".join(p if isinstance(p, str) else p.text for p in step.pieces)
        data = b"".join(map(self._tokenizer.token_bytes, step.ids))
        return data.decode("utf-8", "ignore")

    def of(self, delta: ContentDelta) -> list[dict[str, Any]]:
        """Those of ``delta``; what stands before it is forgotten."""
        begin = delta.end - len(delta.text)
        found = []
        while self._entries and self._entries[0].start < delta.end:
            entry = self._entries.popleft()
            if entry.start >= begin:
                found.append(entry.record)
        return found

    def _record(self, token_id: int, logprob: float) -> dict[str, Any]:
        data = self._tokenizer.token_bytes(token_id)
        text = data.decode("utf-8", "replace")
        return {"token": text, "logprob": logprob, "bytes": list(data)}
