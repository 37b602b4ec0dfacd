"""A model that wants to say certain tokens, and a generation that it is played through.

Rules: one wanted token at a time is by far the likeliest; where another one was taken (a forced
one), the model insists on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atem import wire
from atem.engine import GREEDY, Request, Sampling, Step
from atem.runtime.generation import Generation
from atem.runtime.grammar.vocabulary import Vocabulary
from atem.runtime.sampling import candidates
from atem.runtime.tokens import stop_ids
from atem.tokenizer import Tokenizer, wrap
from tests.parser.tokens import TOKENIZER, ids

if TYPE_CHECKING:
    from collections.abc import Sequence

KNOWN = wrap(TOKENIZER)
V = TOKENIZER.get_vocab_size() + 3
"""Three ids more than the tokenizer has, as padded tables do."""
STOPS = stop_ids(KNOWN, None)
PROMPT = ids("<|start|>user<|message|>Hi.<|eot|><|start|>assistant")
SELF = " to=self<|message|>"
FORCED = "<|eom|><|start|>assistant to=user<|message|>"
EOT, EOM = KNOWN.special_id(wire.EOT), KNOWN.special_id(wire.EOM)


def row(token: int, scale: float = 20.0) -> np.ndarray:
    """Logits [V] with ``token`` far above all others."""
    logits = np.random.default_rng(token).standard_normal(V).astype(np.float32)
    logits[token] += scale
    return logits


def begun(
    prompt: Sequence[int] = PROMPT,
    *,
    tokenizer: Tokenizer = KNOWN,
    stops: frozenset[int] = STOPS,
    context: int = 100_000,
    vocab_size: int = V,
    cached_tokens: int = 0,
    sampling: Sampling = GREEDY,
    **request: Any,
) -> Generation:
    return Generation(
        Request(prompt, sampling=sampling, **request),
        prompt,
        Vocabulary(tokenizer, stops, vocab_size),
        context=context,
        cached_tokens=cached_tokens,
    )


def play(wanted: Sequence[int], prompt: Sequence[int] = PROMPT, **options: Any) -> list[Step]:
    """The steps of a generation, until it is over or the model has said all it wanted."""
    generation = begun(prompt, **options)
    steps: list[Step] = []
    place = 0
    while not generation.finished and place < len(wanted):
        steps.append(generation.take(candidates(row(wanted[place]), generation.need)))
        assert steps[-1].ids == (generation.last_id,)
        assert generation.length == len(prompt) + len(steps)
        place += generation.last_id == wanted[place]
    return steps


def said(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.ids]


def shown(steps: Sequence[Step]) -> str:
    return "".join(
        step.piece if isinstance(step.piece, str) else "".join(piece.text for piece in step.piece)
        for step in steps
    )


def decoded(tokens: Sequence[int]) -> str:
    """The library's decoding."""
    return str(TOKENIZER.decode(list(tokens), skip_special_tokens=False))
