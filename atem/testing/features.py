"""What an engine claims it does, and what it doesn't claim it refuses.

Rules: those of :mod:`atem.testing.contract`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..engine import GREEDY, Request, Sampling
from ..errors import Unsupported
from ..grammar import Form, Grammar
from .driving import HOT, decoded, expect, greedy, ids_of, pieces_of, prompt, refuses, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine import Engine, Feature, Step


class _Illustrated(list[int]):
    """Ids with an image or a video, where only that matters."""

    def __init__(self, ids: list[int], *, images: int = 0, videos: int = 0) -> None:
        super().__init__(ids)
        self.images = ("an image",) * images
        self.videos = ("a video",) * videos

    def token_ids(self, tokenizer: object) -> list[int]:
        return list(self)

    def text(self) -> str:
        return ""


_PLAIN: Final = Sampling(top_k=0)
_GRAMMAR: Final = Grammar(Form("json", '{"type": "object"}'))
_ASKING: Final[dict[Feature, Callable[[list[int]], Request]]] = {
    "grammar": lambda ids: Request(ids, _PLAIN, grammar=_GRAMMAR),
    "images": lambda ids: Request(_Illustrated(ids, images=1), _PLAIN),
    "videos": lambda ids: Request(_Illustrated(ids, videos=1), _PLAIN),
    "logprobs": lambda ids: Request(ids, replace(_PLAIN, logprobs=1)),
    "min_p": lambda ids: Request(ids, replace(_PLAIN, min_p=0.1)),
    "penalties": lambda ids: Request(ids, replace(_PLAIN, presence_penalty=0.5)),
    "reasoning_budget": lambda ids: Request(ids, _PLAIN, reasoning_budget=9),
    "seed": lambda ids: Request(ids, replace(_PLAIN, seed=1)),
    "stop": lambda ids: Request(ids, _PLAIN, stop=("x",)),
    "top_k": lambda ids: Request(ids, Sampling(top_k=5)),
}
_NEEDS_MORE: Final = ("grammar", "images", "reasoning_budget", "videos")
"""What may be refused although it is claimed: the one asked for may be no good for this model."""


def check_refusals(engine: Engine) -> None:
    """What is not claimed is refused by the call, before any step; what is claimed is taken."""
    for feature, ask in _ASKING.items():
        refused = refuses(engine, ask(prompt(engine)), Unsupported)
        if feature not in engine.info.features:
            expect(refused, f"{feature} is not claimed, so it is refused with Unsupported")
        elif feature not in _NEEDS_MORE:
            expect(not refused, f"{feature} is claimed, so it is not refused")


def check_narrow_filters(engine: Engine) -> None:
    """A filter that leaves the likeliest token only is greedy."""
    expected = ids_of(run(engine, greedy(engine)))
    for name, value in (("top_k", 1), ("min_p", 1.0), ("top_p", 1e-9), ("temperature", 1e-9)):
        if name in engine.info.features or name not in _ASKING:
            changes: dict[str, Any] = {"top_k": 0, "temperature": 2.0, name: value}
            found = ids_of(run(engine, greedy(engine, sampling=Sampling(**changes))))
            expect(found == expected, f"{name}={value} is greedy: {found}, {expected}")


def check_heat(engine: Engine) -> None:
    """At a high temperature each seed gives other tokens, unless the model is certain of them."""
    if not {"logprobs", "seed"} <= engine.info.features:
        return
    warm = greedy(engine, 4, sampling=replace(GREEDY, logprobs=0))
    if all(value > -0.01 for value in _logprobs(run(engine, warm))):
        return
    found = [
        ids_of(run(engine, replace(warm, sampling=replace(HOT, seed=number))))
        for number in range(4)
    ]
    expect(any(ids != found[0] for ids in found), f"four seeds give more than {found[0]}")


def check_penalties(engine: Engine) -> None:
    """What was written already is as much less likely as the penalties say."""
    if not {"logprobs", "penalties"} <= engine.info.features:
        return
    sampling = replace(GREEDY, logprobs=20, presence_penalty=1.5, frequency_penalty=0.5)
    counts: Counter[int] = Counter()
    for step in run(engine, greedy(engine, 4, sampling=sampling, max_tokens=24)):
        for number, top in zip(step.ids, step.top_logprobs or (), strict=True):
            left = {n: v - 1.5 * (counts[n] > 0) - 0.5 * counts[n] for n, v in top}
            best = max(left.values())
            expect(left.get(number, best) >= best - 1e-3, f"{number} is the best of {left}")
            counts[number] += 1


def check_stop_strings(engine: Engine) -> None:
    """The text ends before the first stop string; one that never comes changes nothing."""
    if "stop" not in engine.info.features:
        return
    request = greedy(engine, 3, max_tokens=24)
    steps = run(engine, request)
    plain, never = run(engine, replace(request, stop=("never, ever, anywhere",))), ids_of(steps)
    expect(ids_of(plain) == never, "a stop string that never comes changes nothing")
    before, stop = _place_to_stop(engine, never)
    stopped = run(engine, replace(request, stop=("never, ever, anywhere", stop)))
    text = _text(stopped)
    expect(text == before, f"before {stop!r} stands {before!r}, not {text!r}")
    expect(stopped[-1].finish == "stop", "a stop string ends with finish='stop'")
    whole = _text(steps)
    begun = _text(run(engine, replace(request, stop=(whole[-2:] + "\0never",))))
    expect(begun == whole, f"a stop string that only begins takes nothing away: {begun!r}")


def check_logprobs(engine: Engine) -> None:
    """They are of the model's own distribution: at most 0, the likeliest first, of every id."""
    if "logprobs" not in engine.info.features:
        return
    request = greedy(engine, 4, sampling=replace(GREEDY, logprobs=3))
    steps = run(engine, request)
    for step in steps:
        expect(len(step.logprobs or ()) == len(step.ids), "a logprob for each id")
        tops = step.top_logprobs or ()
        expect(len(tops) == len(step.ids), "top_logprobs for each id")
        for number, logprob, top in zip(step.ids, step.logprobs or (), tops, strict=True):
            values = [value for _, value in top]
            expect(logprob <= 1e-6, f"a logprob is at most 0, not {logprob}")
            expect(len(top) == 3 and values == sorted(values, reverse=True), f"best first: {top}")
            expect(sum(map(math.exp, values)) <= 1 + 1e-4, f"probabilities of at most 1: {top}")
            found = dict(top).get(number, -math.inf)
            expect(abs(found - logprob) <= 1e-4, f"{number} with {logprob} is among {top}")
    if "top_k" in engine.info.features:
        warm = replace(request, sampling=Sampling(temperature=2.0, top_k=1, logprobs=0))
        pairs = zip(_logprobs(run(engine, warm)), _logprobs(steps), strict=True)
        expect(all(abs(a - b) <= 1e-3 for a, b in pairs), "logprobs are before temperature")


def check_reasoning_budget(engine: Engine) -> None:
    """At the budget the channel to ``self`` is closed and the answer opened (wire_format 8)."""
    known = [engine.tokenizer.special_id(text) for text in wire.REQUIRED_SPECIALS]
    if "reasoning_budget" not in engine.info.features or None in known:
        return
    opening = prompt(engine, 5, to="self")
    forced = f"{wire.EOM}{wire.START}{wire.ASSISTANT} {wire.TO}{wire.USER}{wire.MESSAGE}"
    for budget in (0, 3):
        ids = ids_of(run(engine, Request(opening, GREEDY, max_tokens=48, reasoning_budget=budget)))
        if not any(map(engine.tokenizer.is_special, ids[:budget])):
            text = decoded(engine, ids[budget:])
            expect(text.startswith(forced), f"after {budget} tokens comes {forced!r}, not {text!r}")


def check_grammar(engine: Engine) -> None:
    """Under a grammar the answer has its form, and the turn ends right behind it."""
    if "grammar" not in engine.info.features:
        return
    for sampling in (GREEDY, replace(HOT, seed=1 if "seed" in engine.info.features else None)):
        opening = prompt(engine, 5, to="user")
        grammar = Grammar(Form("regex", "[a-c]{4}é"))
        request = Request(opening, sampling, max_tokens=48, grammar=grammar)
        *ids, last = ids_of(run(engine, request))
        text = decoded(engine, ids)
        expect(re.fullmatch("[a-c]{4}é", text) is not None, f"{text!r} is of the form [a-c]{{4}}é")
        expect(last in engine.info.stop_ids, f"behind {text!r} comes a stop token, not {last}")


def _place_to_stop(engine: Engine, ids: list[int]) -> tuple[str, str]:
    """All text of ``ids`` before a stop string, and that string, which ordinary text has first."""
    stretches = [
        (special, decoded(engine, list(numbers)))
        for special, numbers in groupby(ids, engine.tokenizer.is_special)
    ]
    text = max((text for special, text in stretches if not special), key=len, default="")
    expect(bool(text), "an answer with text in it, to test stop strings on")
    middle = len(text) // 2
    stop, before = text[middle : middle + 2], ""
    for special, stretch in stretches:
        if not special and stop in stretch:
            return before + stretch[: stretch.index(stop)], stop
        before += stretch
    raise AssertionError(f"{stop!r} is in none of {stretches}")


def _text(steps: list[Step]) -> str:
    return "".join(p if isinstance(p, str) else p.text for p in pieces_of(steps) or ())


def _logprobs(steps: list[Step]) -> list[float]:
    return [value for step in steps for value in step.logprobs or ()]
