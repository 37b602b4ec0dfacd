"""An engine that answers what it is told to: for testing agents and servers without a model.

Rules: a script is a model that gives one token all of its probability, so what
a request asks is honoured by the same code as in a real engine: stop ids,
limits, stop strings, logprobs, a budget for reasoning. Nothing is read ahead
of the consumer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeAlias, cast

import numpy as np

from .. import wire
from ..engine import EngineInfo, Step, require_features
from ..errors import EngineClosed, EngineError, OptionError
from ..render import Prompt, Segment
from ..runtime.generation import FEATURES, Generation
from ..runtime.grammar.vocabulary import Vocabulary
from ..runtime.sampling import candidates
from ..runtime.tokens import stop_ids
from ..tokenizer import wrap
from .tiny import tiny_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..engine import Request
    from ..tokenizer import Tokenizer

    Turn: TypeAlias = str | Sequence[int] | Sequence[Step]
    """A turn as the model would go on: its text with control tokens spelled out, or its ids, or
    its steps."""

_CONTROL: Final = re.compile("(" + "|".join(map(re.escape, wire.CONTROL)) + ")")
MOST: Final = 1 << 20
"""Ids that a scripted model may have; each of its steps looks at all of them."""

_NEVER: Final = -1e30
"""The logit of every other token: finite, and out of reach of any temperature and penalty."""


def wire_ids(text: str, tokenizer: object) -> list[int]:
    """The ids of trusted ``text``, in which a spelled control token is that token.

    Raises RenderError if ``tokenizer`` lacks one of them.
    """
    parts = enumerate(_CONTROL.split(text))
    kept = [Segment(part, "control" if at % 2 else "text") for at, part in parts if part]
    return Prompt(tuple(kept)).token_ids(tokenizer)


class ScriptedEngine:
    """An :class:`~atem.engine.Engine` that gives ``turns``, one a request, token by token.

    ``turns`` are turns in order, or a callable from a request to its turn. A
    turn is text or ids, and is cut (``finish="length"``) if it has no stop
    token; or it is steps, which are given out as they are, the last one with a
    ``finish``. ``requests`` holds what was asked so far.
    ``generate`` raises EngineError when the script is over, and OptionError
    for a turn without a token or an end, or with something else in it.
    """

    def __init__(
        self,
        turns: Iterable[Turn] | Callable[[Request], Turn],
        *,
        tokenizer: object = None,
        context: int = 131072,
    ) -> None:
        self.tokenizer: Tokenizer = wrap(tiny_tokenizer() if tokenizer is None else tokenizer)
        self.info = EngineInfo(
            model="scripted",
            backend="scripted",
            context=context,
            stop_ids=stop_ids(self.tokenizer, None),
            features=FEATURES,
        )
        self.requests: list[Request] = []
        if isinstance(turns, str):
            raise OptionError(f"turns={turns!r} is one text; pass a list of turns, or a callable")
        self._answer = turns if callable(turns) else _in_order(turns)
        self._closed = False

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`."""
        self._require_open()
        require_features(self.info, request)
        self.requests.append(request)
        turn = self._answer(request)
        if isinstance(turn, str):
            return self._played(request, wire_ids(turn, self.tokenizer))
        _check(turn)
        if len(turn) and isinstance(turn[0], Step):
            return self._given(cast("Sequence[Step]", turn))
        return self._played(request, cast("Sequence[int]", turn))

    def close(self) -> None:
        """See :class:`~atem.engine.Engine`; what is still running ends in EngineClosed."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise EngineClosed("the engine was closed; make another")

    def _given(self, steps: Sequence[Step]) -> Iterator[Step]:
        if [place for place, step in enumerate(steps, 1) if step.finish] != [len(steps)]:
            raise OptionError(
                "a scripted turn of steps has a finish on its last step, and no other"
            )
        return self._while_open(iter(steps))

    def _played(self, request: Request, ids: Sequence[int]) -> Iterator[Step]:
        if not len(ids):
            raise OptionError("a scripted turn is empty; it has one token at least")
        if self.info.stop_ids.isdisjoint(ids):
            request = replace(request, max_tokens=min(request.max_tokens or len(ids), len(ids)))
        prompt_ids = request.prompt_ids(self.tokenizer)
        largest = max(*prompt_ids, *ids, *self.info.stop_ids, _largest(self.tokenizer))
        vocabulary = Vocabulary(self.tokenizer, self.info.stop_ids, min(largest + 1, MOST))
        generation = Generation(request, prompt_ids, vocabulary, context=self.info.context)
        return self._while_open(_play(generation, ids, vocabulary.size))

    def _while_open(self, steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            self._require_open()
            yield step


def _play(generation: Generation, ids: Iterable[int], vocabulary: int) -> Iterator[Step]:
    for number in ids:
        row = np.full(vocabulary, _NEVER, np.float32)
        row[number] = 0
        while not generation.finished:
            yield generation.take(candidates(row, generation.need))
            if generation.last_id == number:  # else it was written by a budget for reasoning
                break


def _check(turn: Any) -> None:
    """Raise OptionError unless ``turn`` is a sequence of ids or of steps."""
    parts = turn if hasattr(turn, "__getitem__") else [None]
    strange = [part for part in parts if not _is_id(part)]
    if strange and not all(isinstance(part, Step) for part in parts):
        raise OptionError(
            f"a scripted turn has {strange[0]!r}; it is a text, or ids below {MOST}, or steps"
        )


def _is_id(part: object) -> bool:
    return isinstance(part, SupportsIndex) and 0 <= index(part) < MOST


def _largest(tokenizer: Tokenizer) -> int:
    """The largest id that a budget for reasoning may have to write."""
    specials = [tokenizer.special_id(text) or 0 for text in wire.FRAMING]
    return max(*specials, *tokenizer.encode(f"{wire.ASSISTANT} {wire.TO}{wire.USER}"))


def _in_order(turns: Iterable[Turn]) -> Callable[[Request], Turn]:
    rest = iter(turns)

    def answer(request: Request) -> Turn:
        for turn in rest:
            return turn
        raise EngineError("the script is over; give it one turn for each request")

    return answer
