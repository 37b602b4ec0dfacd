"""``python tests/bench/runtime``: measure the torch engine beside transformers and mlx-lm.

Rules: one process; every round goes through all contenders, so that a slow moment of the machine
hits all of them, and medians over rounds are compared. The prompts differ from round to round.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import random
import statistics
import sys
from typing import Any, NamedTuple

import torch
from contenders import CONTENDERS, Timing, copy_bandwidth
from model import TEXT, checkpoint, read_bytes

PROMPT = 256


class Promise(NamedTuple):
    """What the project promises of a ratio; None where it was not measured."""

    text: str
    value: float | None
    least: float

    @property
    def held(self) -> bool:
        """Whether it was measured and is not below its bound."""
        return self.value is not None and self.value >= self.least

    def line(self) -> str:
        """The verdict, the ratio, the bound."""
        word = "not measured" if self.value is None else "held" if self.held else "BROKEN"
        value = "-" if self.value is None else f"{self.value:.2f}"
        return f"  {word:<13}{self.text:<52}{value:>6}  >= {self.least:g}"


class Row(NamedTuple):
    """Medians of one contender: tokens per second of a prompt and of answers."""

    prefill: float
    decode: float


def prompts(round_number: int) -> list[list[int]]:
    """Eight prompts of their own for each round."""
    drawn = random.Random(round_number)
    return [[drawn.randrange(TEXT) for _ in range(PROMPT)] for _ in range(8)]


def measure(made: dict[str, Any], rounds: int, count: int) -> dict[str, Row]:
    """Every contender in every round, each round beginning with another one."""
    timings: dict[str, list[Timing]] = {name: [] for name in made}
    for number in range(rounds):
        first = number % len(made)
        for name in [*made][first:] + [*made][:first]:
            # A few tokens before the clock runs: whoever was before has emptied the caches.
            made[name].run([ids[:16] for ids in prompts(number)], 3)
            timings[name].append(made[name].run(prompts(number), count))
    return {name: row(made[name].batch, rows) for name, rows in timings.items()}


def row(batch: int, timings: list[Timing]) -> Row:
    """The medians of some timings of ``batch`` requests at once."""
    first = statistics.median(timing.first for timing in timings)
    return Row(PROMPT / first, batch / statistics.median(timing.each for timing in timings))


def make() -> tuple[dict[str, Any], float]:
    """The contenders that are installed, and the tokens a second that memory alone would allow."""
    model, made = checkpoint(), {}
    for name, maker in CONTENDERS.items():
        try:
            made[name] = maker(model)
        except ImportError as error:
            print(f"  {name} is left out: {error}")
    return made, copy_bandwidth() / read_bytes(model)


def table(rows: dict[str, Row], floor: float) -> list[str]:
    """Tokens per second, and as shares of what memory allows one request."""
    lines = [f"{'':<20}{'prompt':>10}{'answer':>10}{'of the floor':>14}"]
    for name, one in rows.items():
        share = one.decode / floor
        lines.append(f"{name:<20}{one.prefill:>10.0f}{one.decode:>10.1f}{share:>14.2f}")
    return [*lines, f"{'floor':<20}{'':>10}{floor:>10.1f}{1:>14.2f}"]


def promises(rows: dict[str, Row]) -> list[Promise]:
    """Every promise about speed."""

    def ratio(field: str, ours: str, theirs: str) -> float | None:
        if ours not in rows or theirs not in rows:
            return None
        return float(getattr(rows[ours], field) / getattr(rows[theirs], field))

    return [
        Promise("answer: atem / transformers", ratio("decode", "atem", "transformers"), 1.5),
        Promise("answer: atem / mlx-lm", ratio("decode", "atem", "mlx-lm"), 1.5),
        Promise("answers: a batch of 8 / one", ratio("decode", "atem, batch of 8", "atem"), 3),
        Promise("prompt: atem / transformers", ratio("prefill", "atem", "transformers"), 1),
    ]


def machine() -> str:
    """What it ran on, and how busy that was."""
    versions = [f"torch {torch.__version__}"]
    for name in ("transformers", "mlx-lm"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    busy = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return ", ".join([f"{torch.get_num_threads()} threads", busy, *versions])


def main() -> int:
    """Run and print; 1 with ``--check`` if a promise is broken."""
    words = argparse.ArgumentParser(prog="tests/bench/runtime", description=__doc__)
    words.add_argument("--quick", action="store_true", help="4 rounds of 16 tokens, not 12 of 48")
    words.add_argument("--check", action="store_true", help="exit with 1 if a promise is broken")
    options = words.parse_args()
    rounds, count = (4, 16) if options.quick else (12, 48)
    print(machine())
    made, floor = make()
    rows = measure(made, rounds, count)
    print(f"\ntokens per second: {PROMPT} of a prompt, then {count} of an answer; float32")
    print("\n".join(table(rows, floor)))
    checks = promises(rows)
    print("\n".join(["", "promises", *(check.line() for check in checks)]))
    broken = any(check.value is not None and not check.held for check in checks)
    return 1 if options.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
