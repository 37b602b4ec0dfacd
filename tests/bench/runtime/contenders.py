"""Engines under one interface: how long a prompt takes, and each token after it.

Rules: a contender turns a prompt into the times at which its tokens came, and adds nothing. All
are greedy, in float32, with the threads that each takes by itself. One that is not installed
raises ImportError when it is made.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from model import weights_of

from atem.engine import GREEDY, Request
from atem.runtime.cuda import TorchEngine
from atem.testing.tiny import hf_config, hf_name, tiny_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from atem.testing.tiny import MemoryCheckpoint

sys.path.append(str(Path(__file__).resolve().parents[3]))  # for the tests' own oracle

clock = time.perf_counter
AHEAD = 64
"""Tokens that are asked for beyond those that are timed, so that nobody ends too early."""


class Timing(NamedTuple):
    """Seconds until the first token, and for each round of one token a request after it."""

    first: float
    each: float


class Atem:
    """This package's torch engine with ``batch`` requests at once."""

    def __init__(self, model: MemoryCheckpoint, batch: int) -> None:
        self.batch = batch
        self._engine = TorchEngine(model, tokenizer=tiny_tokenizer(), device="cpu", prefix_bytes=0)
        self._engine.info = replace(self._engine.info, stop_ids=frozenset())
        self._engine._vocabulary.stop_ids = frozenset()

    def run(self, prompts: Sequence[list[int]], count: int) -> Timing:
        """Once all requests have begun, each round of reading is one step of the engine."""
        start = clock()
        asked = [Request(ids, GREEDY, max_tokens=count + AHEAD) for ids in prompts[: self.batch]]
        running: list[Any] = [self._engine.generate(request) for request in asked]
        next(running[0])
        begun = clock()
        for one in running[1:]:
            next(one)
        ready = clock()
        for _ in range(count):
            for one in running:
                next(one)
        end = clock()
        for one in running:
            one.close()
        return Timing(begun - start, (end - ready) / count)


class Transformers:
    """``generate`` of transformers, told to stream so that each token is seen."""

    batch = 1

    def __init__(self, model: MemoryCheckpoint) -> None:
        from tests.runtime.oracle import oracle

        self._model = oracle(model.config, weights_of(model))

    def run(self, prompts: Sequence[list[int]], count: int) -> Timing:
        """One request."""
        stamps = Stamps()
        ids = torch.tensor([prompts[0]])
        start = clock()
        self._model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=None,
            pad_token_id=0, max_new_tokens=count + 1, streamer=stamps,
        )  # fmt: skip
        _, first, *_, last = stamps.times
        return Timing(first - start, (last - first) / count)


class Stamps:
    """A streamer that keeps the times: of the prompt, then of each token."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, _: object) -> None:
        """A token came."""
        self.times.append(clock())

    def end(self) -> None:
        """Nothing is left."""


class MlxLm:
    """``generate_step`` of mlx-lm."""

    batch = 1

    def __init__(self, model: MemoryCheckpoint) -> None:
        import mlx.core as mx
        from mlx_lm.models.muse_glimmer import Model, ModelArgs

        self._model = Model(ModelArgs.from_dict(hf_config(model.config)))
        weights = {hf_name(name): mx.array(values) for name, values in weights_of(model).items()}
        self._model.load_weights(list(self._model.sanitize(weights).items()))
        mx.eval(self._model.parameters())

    def run(self, prompts: Sequence[list[int]], count: int) -> Timing:
        """One request. It computes a token ahead of the one it gives."""
        import mlx.core as mx
        from mlx_lm.generate import generate_step

        start = clock()
        running = generate_step(mx.array(prompts[0]), self._model, max_tokens=count + AHEAD)
        stamps = [clock() for _ in islice(running, count + 1)]
        running.close()
        return Timing(stamps[0] - start, (stamps[-1] - stamps[0]) / count)


CONTENDERS: dict[str, Callable[[MemoryCheckpoint], Any]] = {
    "atem": lambda model: Atem(model, 1),
    "atem, batch of 8": lambda model: Atem(model, 8),
    "transformers": Transformers,
    "mlx-lm": MlxLm,
}


def copy_bandwidth(repeats: int = 10) -> float:
    """Bytes per second that a copy too large for any cache reads and writes; the best of some."""
    source = torch.ones(1 << 26)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        target.copy_(source)
        best = min(best, clock() - start)
    return 2 * source.nbytes / best
