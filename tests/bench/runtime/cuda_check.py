"""``python tests/bench/runtime/cuda_check.py``: the torch engine's runner on a GPU, without a checkpoint.

Rules: random bfloat16 weights of the released shape (27.9 billion) are made on the device and go
through the same runner as a checkpoint's. First its numbers are compared with each other, then the
clock runs. ``--small`` does all of it in seconds on a CPU, with tiny sizes, where nothing can be
recorded and no figure means anything.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from atem.runtime.cuda.cache import Cache
from atem.runtime.cuda.model import Model
from atem.runtime.cuda.numerics import attend, attend_split
from atem.runtime.cuda.runner import Runner
from atem.runtime.cuda.weights import Layer, Weights
from atem.runtime.schemas import read_config
from atem.testing.tiny import tiny_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from atem.runtime.config import ModelConfig

CHUNK = 1024
BATCHES = (1, 8)


class Setup(NamedTuple):
    """What is measured, and how long."""

    config: ModelConfig
    device: torch.device
    dtype: torch.dtype
    lengths: tuple[int, ...]
    """Tokens that each request has behind it while decoding is timed."""
    steps: int
    copied: int
    """Bytes of the buffer whose copy tells the bandwidth."""


def released() -> ModelConfig:
    """The shape of the released model (model.md 1.1)."""
    return read_config({"text_config": {"rope_parameters": {"rope_theta": 500000.0}}})


def on_gpu() -> Setup:
    """The released shape on the first CUDA device."""
    lengths = (1000, 8000, 30000)
    return Setup(released(), torch.device("cuda"), torch.bfloat16, lengths, 30, 1 << 32)


def on_cpu() -> Setup:
    """Tiny sizes, to see that everything runs."""
    lengths = (20, 90)
    return Setup(tiny_config(), torch.device("cpu"), torch.bfloat16, lengths, 3, 1 << 20)


# ---------------------------------------------------------------------- making


def random_weights(setup: Setup) -> Weights:
    """Weights that keep the size of what goes through them, so that nothing overflows."""
    c = setup.config
    generator = torch.Generator(setup.device).manual_seed(0)
    heads, width = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim

    def matrix(rows: int, columns: int) -> torch.Tensor:
        values = torch.empty(rows, columns, dtype=setup.dtype, device=setup.device)
        return values.normal_(std=columns**-0.5, generator=generator)

    def norm() -> torch.Tensor:
        return 1 + 0.1 * torch.randn(c.hidden_size, device=setup.device, generator=generator)

    def layer() -> Layer:
        d, f = c.hidden_size, c.intermediate_size
        return Layer(
            norm(), matrix(2 * heads + 2 * width, d), matrix(d, heads), norm(),
            norm(), matrix(2 * f, d), matrix(d, f), norm(),
        )  # fmt: skip

    table = matrix(c.vocab_size, c.hidden_size)
    layers = tuple(layer() for _ in range(c.num_hidden_layers))
    return Weights(table, layers, norm(), matrix(c.vocab_size, c.hidden_size))


def read_bytes(weights: Weights) -> int:
    """Bytes of the matrices that every token reads."""
    matrices = [weights.head]
    for layer in weights.layers:
        matrices += [layer.qkvg, layer.o, layer.gate_up, layer.ffn_down]
    return sum(matrix.nbytes for matrix in matrices)


def runner_of(setup: Setup, model: Model, *, static: bool) -> Runner:
    """A runner with a cache of its own; what is static is recorded where that can be."""
    longest = setup.lengths[-1] + CHUNK
    cache = Cache(
        setup.config, device=setup.device, dtype=setup.dtype, context=longest, slack=CHUNK + 64,
        max_slots=8,
    )  # fmt: skip
    return Runner(model, cache, max_batch=8, static=static)


# -------------------------------------------------------------------- checking


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, as a share of the largest value."""
    return float((one - other).abs().max() / other.abs().max())


def ids_of(setup: Setup, count: int, seed: int = 0) -> list[int]:
    """Random ids."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(setup.config.vocab_size, (count,), generator=generator).tolist()


def checks(setup: Setup, model: Model) -> dict[str, float]:
    """Ways to the same numbers, and how far apart they end (bfloat16: a few hundredths)."""
    ids = ids_of(setup, 300)
    plain, static = (runner_of(setup, model, static=static) for static in (False, True))
    found = {}
    for runner in (plain, static):
        runner.reserve(8, 400)
        for slot in range(3):
            runner.fill(slot, 0, ids[slot:299])
    rows = [(ids[299], 299 - slot) for slot in range(3)]
    expected = plain.decode(rows).clone()
    found["static shapes / as they come"] = distance(static.decode(rows), expected)
    found["the same, played again"] = distance(static.decode(rows), expected)
    plain.fill(0, 0, ids[:200])
    whole = plain.fill(0, 200, ids[200:300])
    found["one token / a piece of a prompt"] = distance(expected[:1], whole)
    found["decoded alone / in a batch"] = distance(plain.decode(rows[:1]), expected[:1])
    found["keys in parts / at once"] = parts(setup)
    return found


def parts(setup: Setup) -> float:
    """``attend_split`` beside ``attend``."""
    c = setup.config
    shape = (2, c.num_key_value_heads, 4096, c.head_dim)
    k, v = (torch.randn(shape, dtype=setup.dtype, device=setup.device) for _ in range(2))
    q = k[:, :, : c.num_attention_heads // c.num_key_value_heads].clone()
    bias = torch.zeros(2, 1, 1, 4096, dtype=setup.dtype, device=setup.device)
    bias[..., 3000:] = -torch.inf
    return distance(attend_split(q, k, v, bias, 4).float(), attend(q, k, v, bias).float())


# ---------------------------------------------------------------------- timing


def seconds(setup: Setup, step: Callable[[], Any], steps: int) -> float:
    """Of one step, after three that are not counted."""
    for _ in range(3):
        step()
    wait(setup)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait(setup)
    return (time.perf_counter() - start) / steps


def wait(setup: Setup) -> None:
    """Until the device has done everything."""
    if setup.device.type == "cuda":
        torch.cuda.synchronize()


def bandwidth(setup: Setup) -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.ones(setup.copied, dtype=torch.uint8, device=setup.device)
    target = torch.empty_like(source)
    return 2 * setup.copied / seconds(setup, lambda: target.copy_(source), 10)


def prefill(setup: Setup, runner: Runner) -> float:
    """Tokens of a prompt a second, at its beginning."""
    runner.reserve(1, setup.lengths[-1])
    ids = ids_of(setup, min(CHUNK, setup.lengths[-1]))
    return len(ids) / seconds(setup, lambda: runner.fill(0, 0, ids), 5)


def decode(setup: Setup, runner: Runner, batch: int, length: int) -> float:
    """Tokens a second of ``batch`` requests with ``length`` tokens behind them (all zeros)."""
    runner.reserve(batch, length + 1)
    rows = [(number, length) for number in ids_of(setup, batch)]
    slots, needs = list(range(batch)), [1] * batch

    def step() -> None:
        runner.choose(runner.decode(rows, batch), slots, needs)

    return batch / seconds(setup, step, setup.steps)


def measure(setup: Setup, model: Model, weights: Weights) -> None:
    """Print the figures as they come."""
    speed, size = bandwidth(setup), read_bytes(weights)
    print(f"copy {speed / 1e9:.0f} GB/s, weights {size / 1e9:.2f} GB: {speed / size:.1f} passes/s")
    print(f"prompt: {prefill(setup, runner_of(setup, model, static=False)):.0f} tokens/s")
    for static in (False, True):
        runner = runner_of(setup, model, static=static)
        for length in setup.lengths:
            for batch in BATCHES:
                rate = decode(setup, runner, batch, length)
                share = rate / batch / (speed / size)
                shape = "recorded" if static else "as it comes"
                print(
                    f"{shape:<12} batch {batch}, {length:>6} tokens behind: "
                    f"{rate:8.1f} tokens/s, {share:.2f} of what the copy allows"
                )


def main(words: list[str] | None = None) -> int:
    """Check, measure, print; 1 if numbers that should agree don't."""
    parser = argparse.ArgumentParser(prog="cuda_check.py", description=__doc__)
    parser.add_argument("--small", action="store_true", help="tiny sizes on the CPU")
    options = parser.parse_args(words)
    if not options.small and not torch.cuda.is_available():
        print("torch sees no CUDA device; --small runs on the CPU")
        return 2
    setup = on_cpu() if options.small else on_gpu()
    with torch.inference_mode():
        weights = random_weights(setup)
        model = Model(setup.config, weights)
        found = checks(setup, model)
        for name, value in found.items():
            print(f"{name:<36}{value:.4f}")
        measure(setup, model, weights)
    return 0 if max(found.values()) < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
