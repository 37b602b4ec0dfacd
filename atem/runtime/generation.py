"""One request between logits and steps: when it ends, what it shows, what comes next.

Rules: engines own tensors and nothing else. Stop ids, limits, stop strings,
text, seeds, grammars and the reasoning budget are decided here, the same for
all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import wire
from ..engine import Feature, Finish, Step
from ..errors import ContextOverflow, OptionError, Unsupported
from .budget import ReasoningBudget, opened
from .detokenizer import Detokenizer
from .grammar.guide import Guide
from .grammar.vocabulary import supported
from .sampling import Candidates, Picked, Sampler
from .stops import StopStrings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine import Request
    from ..tokenizer import Tokenizer
    from ..wire import Piece
    from .grammar.vocabulary import Vocabulary

FEATURES: Final[frozenset[Feature]] = frozenset(
    ("logprobs", "min_p", "penalties", "reasoning_budget", "seed", "stop", "top_k")
)
"""What a generation honours, so what every engine has that is built on it."""


def features(tokenizer: Tokenizer) -> frozenset[Feature]:
    """:data:`FEATURES`, and "grammar" where one can be applied to this tokenizer's ids."""
    return FEATURES | {"grammar"} if supported(tokenizer) else FEATURES


class Generation:
    """The life of one request.

    ``context`` counts tokens, prompt and output together; ``cached_tokens`` may
    be set until the first ``take``. ``last_id`` is the id that the engine feeds
    next, ``length`` the tokens so far, prompt included. Each ``take`` gives one
    step with one id; its pieces may come with a later step, while they may
    begin a stop string. Raises ContextOverflow if the prompt leaves no room for
    one token, OptionError for a prompt that is empty or has an id beyond the
    vocabulary, or that a grammar doesn't allow, Unsupported for a grammar that
    can't be applied and for a reasoning budget that tokenizer or model can't
    write.
    """

    def __init__(
        self,
        request: Request,
        prompt_ids: Sequence[int],
        vocabulary: Vocabulary,
        *,
        context: int,
        cached_tokens: int = 0,
    ) -> None:
        tokenizer = vocabulary.tokenizer
        self.cached_tokens = cached_tokens
        self.finished = False
        self.last_id = _checked(prompt_ids, vocabulary.size)[-1]
        self.length = len(prompt_ids)
        self._first = True
        self._end = self.length + _room(request, self.length, context)
        self._stop_ids = vocabulary.stop_ids
        self._logprobs = request.sampling.logprobs is not None
        self._sampler = Sampler(request.sampling, prompt_ids, vocabulary.size)
        self._budget = _budget(request, vocabulary, prompt_ids)
        self._guide: Guide | None = None
        if request.grammar is not None:
            compiled = vocabulary.compiled(request.grammar)
            begun = opened(prompt_ids, tokenizer)
            self._guide = Guide(compiled, begun, thinking=self._thinking)
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopStrings(request.stop)
        self._text_mode = None in map(tokenizer.special_id, wire.REQUIRED_SPECIALS)

    @property
    def need(self) -> int | None:
        """How many of the best candidates the next ``take`` wants; None for all ids in order."""
        if self._due is not None:
            return None if self._logprobs else 1
        need = self._sampler.need
        return need if self._guide is None else self._guide.need(need)

    @property
    def _thinking(self) -> bool:
        """Whether the budget, if there is one, leaves anything to think."""
        return self._budget is None or not self._budget.spent

    @property
    def _due(self) -> int | None:
        """The id that has to come now, if there is one."""
        due = None if self._budget is None else self._budget.next
        return self._guide.only if due is None and self._guide is not None else due

    def take(self, candidates: Candidates) -> Step:
        """The next step. Raises EngineError for logits that can't be sampled from."""
        assert not self.finished
        picked = self._choose(candidates)
        self.last_id = picked.id
        self.length += 1
        pieces, finish = self._show(picked.id)
        self.finished = finish is not None
        return self._step(picked, pieces, finish)

    def _choose(self, candidates: Candidates) -> Picked:
        due = self._due
        if due is not None:
            picked = self._sampler.force(candidates, due)
        else:
            allowed = None if self._guide is None else self._guide.allowed
            picked = self._sampler.pick(candidates, allowed)
        if self._budget is not None:
            self._budget.record(picked.id)
        if self._guide is not None:
            self._guide.thinking = self._thinking
            self._guide.record(picked.id)
        return picked

    def _show(self, token_id: int) -> tuple[list[Piece], Finish | None]:
        finish: Finish | None = "length" if self.length >= self._end else None
        if token_id in self._stop_ids:
            finish = "stop"
        pieces = self._stops.take(self._detokenizer.take(token_id, last=finish is not None))
        if self._stops.found:
            return pieces, "stop"
        return pieces + (self._stops.flush() if finish else []), finish

    def _step(self, picked: Picked, pieces: list[Piece], finish: Finish | None) -> Step:
        first, self._first = self._first, False
        # Without special tokens only the text itself can be framing (wire_format 1.1).
        joined = "".join(piece.text for piece in pieces) if self._text_mode else None
        return Step(
            ids=(picked.id,),
            piece=tuple(pieces) if joined is None else joined,
            finish=finish,
            logprobs=None if picked.logprob is None else (picked.logprob,),
            cached_tokens=self.cached_tokens if first else None,
            top_logprobs=None if picked.top is None else (picked.top,),
            stop=self._stops.found,
        )


def _budget(
    request: Request, vocabulary: Vocabulary, prompt_ids: Sequence[int]
) -> ReasoningBudget | None:
    if request.reasoning_budget is None:
        return None
    budget = ReasoningBudget(
        request.reasoning_budget,
        vocabulary.tokenizer,
        prompt_ids,
        answers=request.grammar is None,
    )
    if max(budget.run) >= vocabulary.size:
        raise Unsupported(
            f"reasoning_budget= has to write the id {max(budget.run)}, and the model has "
            f"{vocabulary.size}; load the engine with the model's own tokenizer"
        )
    return budget


def _checked(prompt_ids: Sequence[int], vocab_size: int) -> Sequence[int]:
    if not prompt_ids:
        raise OptionError("prompt= is empty; it has at least one token, such as the first special")
    strange = [number for number in prompt_ids if not 0 <= number < vocab_size]
    if strange:
        raise OptionError(
            f"prompt= has the id {strange[0]}, and the model has {vocab_size}; encode it with the "
            "engine's own tokenizer"
        )
    return prompt_ids


def _room(request: Request, length: int, context: int) -> int:
    room = context - length
    if room < 1:
        raise ContextOverflow(
            f"the prompt has {length} tokens and the context {context}, which leaves no room for "
            "an answer; shorten the prompt, or load the engine with a larger context"
        )
    return room if request.max_tokens is None else min(room, request.max_tokens)
