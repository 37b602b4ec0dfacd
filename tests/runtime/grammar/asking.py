"""Engines over random models, which write garbage unless they are kept to a grammar.

Rules: what was written is read by the parser, which knows no grammar; whether it
is what was asked is said by jsonschema and llguidance's own matcher.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import llguidance
import numpy as np

from atem.engine import GREEDY, Request, Sampling
from atem.grammar import Form, Grammar
from atem.parser.api import Parser
from atem.parser.fold import Turn, collect
from atem.runtime.cuda import TorchEngine
from atem.runtime.generation import Generation
from atem.runtime.grammar.vocabulary import Vocabulary
from atem.runtime.reference import ReferenceEngine
from atem.runtime.sampling import candidates
from atem.runtime.tokens import stop_ids
from atem.testing.scripted import wire_ids
from atem.testing.tiny import (
    VOCABULARY,
    MemoryCheckpoint,
    tiny_config,
    tiny_tokenizer,
    tiny_weights,
)
from atem.tokenizer import wrap
from atem.tools import Tool, ToolSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from atem.engine import Step

PROMPT = "<|begin_of_text|><|start|>user<|message|>Hi.<|eot|><|start|>assistant"
CONTEXT = 2048
WILD = Sampling(temperature=1.0, top_k=0, top_p=1.0)
"""The model's own distribution, of which nothing is cut off."""


@cache
def checkpoint() -> MemoryCheckpoint:
    config = tiny_config(num_hidden_layers=2, max_position_embeddings=CONTEXT)
    return MemoryCheckpoint(config, tiny_weights(config, 3))


@cache
def reference() -> ReferenceEngine:
    return ReferenceEngine(checkpoint(), tokenizer=tiny_tokenizer())


@cache
def torch_engine() -> TorchEngine:
    return TorchEngine(checkpoint(), tokenizer=tiny_tokenizer())


class Dice:
    """An engine without a model: its logits are drawn, by the seed of the request."""

    def __init__(self) -> None:
        self.tokenizer = wrap(tiny_tokenizer())
        self.stop_ids = stop_ids(self.tokenizer, None)
        self.vocabulary = Vocabulary(self.tokenizer, self.stop_ids, VOCABULARY)

    def generate(self, request: Request) -> Iterator[Step]:
        generation = Generation(
            request, request.prompt_ids(self.tokenizer), self.vocabulary, context=CONTEXT
        )
        random = np.random.default_rng(request.sampling.seed)
        while not generation.finished:
            row = random.standard_normal(VOCABULARY).astype(np.float32)
            yield generation.take(candidates(row, generation.need))


DICE = Dice()


@dataclass(frozen=True)
class Written:
    """What an engine wrote: ids, how it ended, and what the parser makes of it."""

    ids: tuple[int, ...]
    finish: str
    turn: Turn
    text: str


def asked(
    engine: Any,
    grammar: Grammar | None,
    *,
    prompt: str = PROMPT,
    seed: int | None = None,
    sampling: Sampling | None = None,
    max_tokens: int = 800,
    **request: Any,
) -> Request:
    """A request: greedy, or drawn with ``seed``."""
    drawn = GREEDY if seed is None else replace(WILD, seed=seed)
    ids = wire_ids(prompt, engine.tokenizer)
    return Request(
        ids, sampling or drawn, max_tokens=max_tokens, grammar=grammar, **request
    )  # fmt: skip


def written(
    engine: Any,
    grammar: Grammar | None,
    *,
    tools: Sequence[Tool] = (),
    channel: str | None = None,
    **request: Any,
) -> Written:
    """One turn of ``engine`` under ``grammar``."""
    parser = Parser(tools=ToolSet(tools), tokenizer=engine.tokenizer, channel=channel)
    steps = list(engine.generate(asked(engine, grammar, **request)))
    pieces = [piece for step in steps for piece in step.pieces or ()]
    events = [event for piece in pieces for event in parser.feed(piece)]
    finish = steps[-1].finish
    return Written(
        tuple(number for step in steps for number in step.ids),
        finish or "",
        collect([*events, *parser.close(finish)]),
        "".join(piece.text for piece in pieces),
    )


def json_form(schema: Any) -> Form:
    return Form("json", json.dumps(schema))


@cache
def _bytes_tokenizer() -> llguidance.LLTokenizer:
    return llguidance.LLTokenizer("byte")


def fits(schema: Any, text: str) -> bool:
    """Whether llguidance, which reads ``text`` byte by byte, takes the whole of it."""
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = llguidance.LLMatcher(_bytes_tokenizer(), grammar)
    raw = list(text.encode())
    return matcher.try_consume_tokens(raw) == len(raw) and matcher.is_accepting()
