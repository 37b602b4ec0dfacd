"""What every engine gives again: alone, beside others, after others, after a cancellation.

Rules: those of :mod:`atem.testing.contract`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engine import GREEDY, Request
from ..errors import EngineClosed, EngineError
from .driving import HOT, expect, greedy, ids_of, in_turns, prompt, refuses, run, runs

if TYPE_CHECKING:
    from ..engine import Engine


def check_determinism(engine: Engine) -> None:
    """The same greedy request gives the same tokens, and so does the same seed."""
    requests = [greedy(engine, 1)]
    if "seed" in engine.info.features:
        requests += [Request(prompt(engine), replace(HOT, seed=n), max_tokens=12) for n in (1, 2)]
    for request in requests:
        first, second = runs(engine, [request, request])
        expect(first == second, f"the same tokens twice for {request.sampling}: {first}, {second}")


def check_cancelling(engine: Engine) -> None:
    """A closed iterator leaves the engine as it was; it may be closed before it began.

    More are closed than run at once, so that one which keeps its place is missed.
    """
    request = greedy(engine, 2)
    expected = ids_of(run(engine, request))
    for taken in (0, 3, *[1] * min(engine.info.max_batch, 32)):
        steps: Any = engine.generate(request)
        for _, _ in zip(range(taken), steps, strict=False):
            pass
        steps.close()
        expect(next(steps, None) is None, "no step after closing")
        found = ids_of(run(engine, request))
        expect(found == expected, f"the same after closing at {taken}: {found}, {expected}")


def check_batches(engine: Engine) -> None:
    """Eight generations in turns, of ragged lengths, give what each gives alone."""
    requests = [greedy(engine, 10 + n, max_tokens=3 + 2 * n) for n in range(8)]
    if "seed" in engine.info.features:
        hot = [replace(request, sampling=replace(HOT, seed=7)) for request in requests]
        requests = [*requests[::2], *hot[1::2]]
    together = in_turns(engine, requests)
    alone = runs(engine, requests)
    expect(together == alone, f"the same in turns and alone: {together}, {alone}")


def check_joining_and_leaving(engine: Engine) -> None:
    """A generation that begins while others run, or outlives them, gives what it gives alone."""
    first, second, third = (greedy(engine, 20 + n, max_tokens=12) for n in range(3))
    leaving: Any = engine.generate(first)
    next(leaving)
    staying: Any = engine.generate(second)
    begun = [next(staying), next(staying)]
    next(leaving, None)
    leaving.close()
    joined = engine.generate(third)
    last = [next(joined)]
    found = [ids_of([*begun, *staying]), ids_of([*last, *joined])]
    expected = runs(engine, [second, third])
    expect(found == expected, f"the same in company and alone: {found}, {expected}")


def check_prefixes(engine: Engine) -> None:
    """A prompt whose beginning is known gives what it gave when it was new."""
    trunk = prompt(engine, 30) * 6
    branches = [[*trunk, *prompt(engine, 31 + n)] for n in range(3)]
    requests = [Request(ids, GREEDY, max_tokens=12) for ids in branches]
    cold = runs(engine, requests)
    warm = [run(engine, request) for request in requests]
    expect(list(map(ids_of, warm)) == cold, "warm prompts give the tokens of cold ones")
    for ids, steps in zip(branches, warm, strict=True):
        reused = steps[0].cached_tokens or 0
        expect(
            reused < len(ids), f"{reused} tokens of {len(ids)} were reused: one is always computed"
        )
    requests = [
        Request([*ids, *out], GREEDY, max_tokens=8) for ids, out in zip(branches, cold, strict=True)
    ]
    first, again = runs(engine, requests), runs(engine, requests)
    expect(first == again, "a conversation that goes on gives the same tokens again")


def check_closing(engine: Engine) -> None:
    """After ``close`` nothing is generated, and closing again does nothing. This closes it."""
    running = engine.generate(greedy(engine, max_tokens=24))
    next(running)
    engine.close()
    engine.close()
    expect(refuses(engine, greedy(engine), EngineClosed), "EngineClosed after close()")
    try:
        rest = list(running)
    except EngineError:
        rest = []
    expect(
        all(step.finish == "abort" for step in rest), "what was running ends, as an abort or error"
    )
