"""Run a model and read its turn: from a checkpoint on disk to events.

It needs the extra [engine]. The checkpoint here is tiny and random, so it says nothing sensible;
any folder or .gguf file of Muse Glimmer takes its place.
"""

from __future__ import annotations

import tempfile
from contextlib import closing

import atem
from atem.testing.tiny import tiny_checkpoint

path = tiny_checkpoint(tempfile.mkdtemp(), seed=4)
plan = atem.plan(path, backend="reference")
print(f"layout:  {plan.layout}, {plan.parameters:,} parameters, {plan.verdict}")

prompt = atem.render(
    [{"role": "user", "content": "When is high water?"}],
    reasoning_strength="low",
)
request = atem.Request(
    prompt,
    atem.Sampling(temperature=0.7, seed=1),
    max_tokens=40,
    reasoning_budget=8,
)
with closing(atem.load(path, backend="reference")) as engine:
    steps = list(engine.generate(request))
    again = list(engine.generate(request))

turn = atem.collect(atem.parse_stream(steps))
print("tokens: ", sum(len(step.ids) for step in steps), steps[-1].finish)
print("turn:   ", turn.finish_reason, f"complete={turn.complete}")
same = [step.ids for step in again] == [step.ids for step in steps]
print("again:  ", same, again[0].cached_tokens, "reused")
