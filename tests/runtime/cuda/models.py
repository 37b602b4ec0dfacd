"""The models that the torch engine is tested on, and its engine and runner over them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from atem.engine import GREEDY, Request
from atem.runtime.cuda import TorchEngine
from atem.runtime.cuda.cache import Cache
from atem.runtime.cuda.model import Model
from atem.runtime.cuda.runner import Runner
from atem.runtime.cuda.weights import Loader
from atem.testing.tiny import MemoryCheckpoint, tiny_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

CPU = torch.device("cpu")


def some_ids(count: int, seed: int = 0) -> list[int]:
    """Ordinary tokens: transformers looks placeholders of images up as id 0 (model.md 2.1)."""
    return np.random.default_rng(seed).integers(0, 268, count).tolist()


def ask(ids: Sequence[int], count: int = 12, **changes: Any) -> Request:
    return Request(ids, **{"sampling": GREEDY, "max_tokens": count} | changes)


def tiny_engine(
    checkpoint: Any = None, *, stops: bool = True, static: bool = False, **options: Any
) -> TorchEngine:
    """An engine over ``checkpoint``, or over a random one.

    Without ``stops`` nothing ends early; ``static`` decodes in the shapes that a GPU records.
    """
    engine = TorchEngine(checkpoint or MemoryCheckpoint(), tokenizer=tiny_tokenizer(), **options)
    if not stops:
        engine.info = replace(engine.info, stop_ids=frozenset())
        engine._vocabulary.stop_ids = frozenset()
    engine._runner._static = static
    return engine


def tiny_runner(
    checkpoint: Any = None,
    *,
    dtype: torch.dtype = torch.float32,
    static: bool = False,
    slots: int = 8,
    slack: int = 16,
    length: int = 128,
) -> Runner:
    """A runner with room for ``slots`` requests of ``length`` tokens."""
    checkpoint = checkpoint or MemoryCheckpoint()
    config = checkpoint.config
    with torch.inference_mode():
        weights = Loader(checkpoint, CPU, dtype, lambda _: None).load()
        cache = Cache(
            config, device=CPU, dtype=dtype, context=512, slack=slack, max_slots=slots
        )  # fmt: skip
        runner = Runner(Model(config, weights), cache, max_batch=slots, static=static)
    runner.reserve(slots, length)
    return runner


def in_pieces(runner: Runner, ids: Sequence[int], sizes: Sequence[int], slot: int = 0) -> Any:
    """Logits [T, V] of ``ids`` from slot ``slot``, computed in pieces of ``sizes``."""
    rows, start = [], 0
    for size in sizes:
        rows.append(runner.fill(slot, start, ids[start : start + size], size))
        start += size
    assert start == len(ids)
    return torch.cat(rows).numpy()


def one_by_one(runner: Runner, ids: Sequence[int]) -> Any:
    """Logits [T, V] of ``ids``, a decoding step for each."""
    rows = [runner.decode([(number, place)])[0].clone() for place, number in enumerate(ids)]
    return torch.stack(rows).numpy()
