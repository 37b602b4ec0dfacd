"""``python tests/bench/runtime/grammar_cost.py``: what a grammar costs, token by token.

Rules: no model, its logits are drawn; a byte-level vocabulary of the released size, made of random
words. What is timed is all that a grammar adds: the mask, and choosing from the whole row.
"""

from __future__ import annotations

import json
import random
import statistics
import string
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from atem.engine import GREEDY, Request, Sampling
from atem.grammar import TEXT, CallForm, Form, Grammar, Parameter
from atem.runtime.generation import Generation
from atem.runtime.grammar.vocabulary import Vocabulary
from atem.runtime.sampling import candidates
from atem.runtime.tokens import stop_ids
from atem.testing.scripted import wire_ids
from atem.testing.tiny import SPECIALS
from atem.tokenizer import wrap

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = 202_048
TOKENS = 400
PROMPT = "<|begin_of_text|><|start|>user<|message|>Hi.<|eot|><|start|>assistant"

ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "maximum": 9999},
        "tag": {"enum": ["red", "green", "blue"]},
        "note": {"type": "string", "maxLength": 100},
    },
    "required": ["id", "tag", "note"],
    "additionalProperties": False,
}
SCHEMA = {"type": "array", "items": ITEM, "minItems": 6, "maxItems": 9}


def tokenizer() -> Any:
    """Bytes, words of random letters and signs, and the named specials."""
    drawn = random.Random(0)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    signs = [*string.ascii_letters, *string.digits, *'{}[]":,._-<>/=', *"Ġ" * 8]
    pieces, vocabulary = list(signs), {char: number for number, char in enumerate(alphabet)}
    merges = []
    while len(vocabulary) < VOCABULARY - 2048:
        left, right = drawn.choice(pieces), drawn.choice(signs if drawn.random() < 0.6 else pieces)
        if len(left + right) <= 12 and left + right not in vocabulary and "Ġ" not in right:
            vocabulary[left + right] = len(vocabulary)
            merges.append((left, right))
            pieces.append(left + right)
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    return wrap(made)


def tools(count: int) -> tuple[CallForm, ...]:
    """Calls with five parameters each, of every kind."""

    def forms(number: int) -> list[Form]:
        whole = Form("json", json.dumps({"type": "integer", "minimum": number}))
        listed = Form("json", json.dumps({"type": "array", "items": {"type": "string"}}))
        return [TEXT, whole, listed, Form("regex", f"a{number}|b"), TEXT]

    return tuple(
        CallForm(
            f"tool{number}",
            tuple(Parameter(f"p{at}", form, at < 2) for at, form in enumerate(forms(number))),
        )
        for number in range(count)
    )


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def row(name: str, vocabulary: Vocabulary, grammar: Grammar | None, sampling: Sampling) -> None:
    """Print medians and means of one generation."""
    ids = wire_ids(PROMPT, vocabulary.tokenizer)
    request = Request(ids, sampling, max_tokens=TOKENS, grammar=grammar, reasoning_budget=0)

    def begin() -> Generation:
        return Generation(request, ids, vocabulary, context=9999)

    first, generation = milliseconds(begin), begin()
    logits = np.random.default_rng(0).standard_normal((8, VOCABULARY)).astype(np.float32) * 3
    masks, choices = [], []
    while not generation.finished:
        masks.append(milliseconds(lambda: generation.need))
        found = candidates(logits[len(masks) % 8], generation.need)
        choices.append(milliseconds(lambda: generation.take(found)))  # noqa: B023 - run at once
    worst = statistics.quantiles(masks, n=100)[98]
    print(
        f"{name:<28}{first:>10.1f}{statistics.mean(masks):>10.3f}{worst:>10.3f}"
        f"{statistics.mean(choices):>10.3f}{len(masks):>8}"
    )


def main() -> None:
    known = tokenizer()
    vocabulary = Vocabulary(known, stop_ids(known, None), VOCABULARY)
    print(f"{'milliseconds':<28}{'begin':>10}{'mask':>10}{'p99':>10}{'choose':>10}{'tokens':>8}")
    form, calls = Form("json", json.dumps(SCHEMA)), tools(40)
    wanted: dict[str, Grammar | None] = {
        "nothing": None,
        "JSON": Grammar(form),  # the first one reads the vocabulary too
        "a call of 40 tools": Grammar(None, calls),
        "JSON or a call": Grammar(form, calls),
    }
    for name, grammar in wanted.items():
        for word, sampling in (("greedy", GREEDY), ("sampled", Sampling(seed=1))):
            row(f"{name}, {word}", vocabulary, grammar, sampling)


if __name__ == "__main__":
    main()
