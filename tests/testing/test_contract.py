"""The contract over the engines that need no device, and over engines that break it."""

from __future__ import annotations

import itertools
import random
from contextlib import closing, suppress
from dataclasses import replace
from typing import ClassVar

import pytest

from atem import wire
from atem.engine import GREEDY, Request, Step
from atem.errors import ContextOverflow, EngineClosed
from atem.runtime.reference import ReferenceEngine
from atem.testing.contract import CHECKS, EngineContract
from atem.testing.driving import expect
from atem.testing.scripted import ScriptedEngine
from atem.testing.tiny import MemoryCheckpoint, tiny_config, tiny_tokenizer
from atem.tokenizer import wrap

VOCABULARY = 283


def babble(request):
    """Random ids that the prompt alone decides, with a stop sooner or later."""
    source = random.Random(str(request.prompt))
    ids = [source.randrange(VOCABULARY) for _ in range(source.randrange(20, 60))]
    return [*ids, tiny_tokenizer().token_to_id(wire.END_OF_TEXT)]


def scripted():
    return ScriptedEngine(babble, context=400)


class TestScriptedEngine(EngineContract):
    @pytest.fixture
    def engine(self):
        with closing(scripted()) as engine:
            yield engine


class TestReferenceEngine(EngineContract):
    @pytest.fixture
    def engine(self):
        checkpoint = MemoryCheckpoint(
            tiny_config(vocab_size=VOCABULARY, max_position_embeddings=400)
        )
        with closing(ReferenceEngine(checkpoint, tokenizer=tiny_tokenizer(), block=16)) as engine:
            yield engine


def test_every_check_is_a_test_of_the_class():
    assert {f"test_{name}" for name in CHECKS} <= set(dir(EngineContract))


class Broken:
    """An engine that is right but for one thing, which a subclass adds."""

    def __init__(self):
        self.right = scripted()
        self.tokenizer = self.right.tokenizer

    @property
    def info(self):
        return self.right.info

    def generate(self, request):
        return self.change(request, self.right.generate(request))

    def change(self, request, steps):
        return steps

    def close(self):
        self.right.close()


class StopsAtMessages(Broken):
    @property
    def info(self):
        eom = self.tokenizer.special_id(wire.EOM)
        return replace(self.right.info, stop_ids=self.right.info.stop_ids | {eom})


class ForgetsTheEnd(Broken):
    def change(self, request, steps):
        return (replace(step, finish=None) for step in steps)


class GoesOn(Broken):
    def change(self, request, steps):
        yield from steps
        yield Step(ids=(1,), piece=wire.Piece("b"))


class StopsAtStopIdsWithoutThem(Broken):
    def change(self, request, steps):
        return (replace(s, ids=()) if s.finish == "stop" and s.ids[0] > 255 else s for s in steps)


class OneTooMany(Broken):
    def generate(self, request):
        limit = request.max_tokens
        return self.right.generate(replace(request, max_tokens=limit and limit + 1))


class ReportsTooManyCachedTokens(Broken):
    def change(self, request, steps):
        return (replace(step, cached_tokens=99999) for step in steps)


class GivesLogprobsUnasked(Broken):
    def change(self, request, steps):
        return (replace(step, logprobs=(0.0,)) for step in steps)


class RefusesLate(Broken):
    def generate(self, request):
        def steps():
            yield from self.right.generate(request)

        return steps()


class CutsLongPrompts(Broken):
    def generate(self, request):
        with suppress(ContextOverflow):
            return self.right.generate(request)
        return self.right.generate(replace(request, prompt=request.prompt[-300:]))


class SpellsSpecials(Broken):
    def change(self, request, steps):
        return (replace(s, piece=tuple(wire.Piece(p.text) for p in s.piece)) for s in steps)


class LosesText(Broken):
    def change(self, request, steps):
        return (replace(s, piece=tuple(p for p in s.piece if p.text != "a")) for s in steps)


class IgnoresPenalties(Broken):
    @property
    def info(self):
        return replace(self.right.info, features=self.right.info.features - {"penalties"})


class RefusesWhatItClaims(Broken):
    @property
    def info(self):
        return replace(scripted().info, features=scripted().info.features)

    def __init__(self):
        super().__init__()
        self.right.info = replace(self.right.info, features=self.right.info.features - {"seed"})


class IgnoresStopStrings(Broken):
    def generate(self, request):
        return self.right.generate(replace(request, stop=()))


class ShowsStopStrings(Broken):
    def generate(self, request):
        stop = request.stop[-1] if request.stop else ""
        steps = self.right.generate(request)
        return (
            replace(s, piece=(*s.piece, wire.Piece(stop))) if s.finish and stop else s
            for s in steps
        )


class ScalesLogprobs(Broken):
    def change(self, request, steps):
        scale = 1 + request.sampling.temperature
        return (
            replace(s, logprobs=s.logprobs and tuple(value - scale for value in s.logprobs))
            for s in steps
        )


class MovesTheLikeliest(Broken):
    def change(self, request, steps):
        return (
            replace(s, top_logprobs=s.top_logprobs and (((282, 0.0), (281, -9.0), (280, -9.0)),))
            for s in steps
        )


class LosesWhatAStopStringMayBe(Broken):
    def change(self, request, steps):
        held = any("never" in stop for stop in request.stop)
        return (replace(s, piece=()) if s.finish == "length" and held else s for s in steps)


class CutsAStopAtTheLimit(Broken):
    def change(self, request, steps):
        for number, step in enumerate(steps, 1):
            yield replace(step, finish="length") if number == request.max_tokens else step


class LeavesRoom(Broken):
    def generate(self, request):
        room = self.info.context - len(request.prompt) - 1
        limit = request.max_tokens or max(room, 1)
        return self.right.generate(replace(request, max_tokens=limit))


class CountsAllAsCached(Broken):
    known: frozenset[tuple[int, ...]] = frozenset()

    def change(self, request, steps):
        prompt = tuple(request.prompt)
        count = len(prompt) if prompt in self.known else 0
        self.known |= {prompt}
        return (replace(s, cached_tokens=None if n else count) for n, s in enumerate(steps))


class KeepsThePlaceOfTheCancelled(Broken):
    places = 8

    @property
    def info(self):
        return replace(self.right.info, max_batch=8)

    def change(self, request, steps):
        try:
            yield from steps
        except GeneratorExit:
            self.places -= 1
            raise
        expect(self.places > 0, "a place for everybody")


class Ignores(Broken):
    """A model with a choice, and a setting that is always the same."""

    setting: ClassVar[dict[str, float]] = {}

    def __init__(self):
        config = tiny_config(vocab_size=VOCABULARY, max_position_embeddings=400)
        self.right = ReferenceEngine(MemoryCheckpoint(config), tokenizer=tiny_tokenizer())
        self.tokenizer = self.right.tokenizer

    def generate(self, request):
        sampling = replace(request.sampling, **self.setting)
        return self.right.generate(replace(request, sampling=sampling))


class IgnoresTopP(Ignores):
    setting: ClassVar = {"top_p": 1.0}


class IgnoresSeeds(Ignores):
    setting: ClassVar = {"seed": 5}


class IsAlwaysGreedy(Ignores):
    setting: ClassVar = {"temperature": 0.0}


class AppliesNoPenalty(Ignores):
    setting: ClassVar = {"presence_penalty": 0.0, "frequency_penalty": 0.0}


class IgnoresTheBudget(Broken):
    def generate(self, request):
        return self.right.generate(replace(request, reasoning_budget=None))


class IgnoresGrammars(Broken):
    @property
    def info(self):
        return replace(self.right.info, features=self.right.info.features | {"grammar"})

    def generate(self, request):
        return self.right.generate(replace(request, grammar=None))


class Drifts(Broken):
    """Each generation is a little different from the one before."""

    def __init__(self):
        super().__init__()
        self.count = itertools.count()

    def change(self, request, steps):
        count = next(self.count)
        return (replace(step, ids=((step.ids[0] + count) % 256,)) for step in steps)


class DriftsInCompany(Broken):
    """A generation is another one while others run."""

    running = 0

    def change(self, request, steps):
        self.running += 1
        try:
            for step in steps:
                yield replace(step, ids=((step.ids[0] + self.running) % 256,))
        finally:
            self.running -= 1


class DriftsWhenWarm(Broken):
    """A prompt is another one the second time."""

    def __init__(self):
        super().__init__()
        self.known = set()

    def change(self, request, steps):
        shift = tuple(request.prompt) in self.known
        self.known.add(tuple(request.prompt))
        return (replace(step, ids=((step.ids[0] + shift) % 256,)) for step in steps)


class BreaksWhenCancelled(Broken):
    broken = 0

    def change(self, request, steps):
        try:
            for step in steps:
                yield replace(step, ids=((step.ids[0] + self.broken) % 256,))
        except GeneratorExit:
            self.broken += 1


class StaysOpen(Broken):
    def close(self):
        """Nothing."""


class ClosesOnce(Broken):
    def close(self):
        if self.right._closed:
            raise EngineClosed("again")
        super().close()


class WaversUnderTopK(Broken):
    def change(self, request, steps):
        shift = request.sampling.top_k == 1
        return (replace(step, ids=((step.ids[0] + shift) % 256,)) for step in steps)


BREAKS = [
    (StopsAtMessages, "stop_ids"),
    (ForgetsTheEnd, "steps"),
    (GoesOn, "steps"),
    (StopsAtStopIdsWithoutThem, "steps"),
    (OneTooMany, "max_tokens"),
    (ReportsTooManyCachedTokens, "steps"),
    (GivesLogprobsUnasked, "steps"),
    (RefusesLate, "context"),
    (CutsLongPrompts, "context"),
    (SpellsSpecials, "pieces"),
    (LosesText, "pieces"),
    (IgnoresPenalties, "refusals"),
    (RefusesWhatItClaims, "refusals"),
    (IgnoresStopStrings, "stop_strings"),
    (ShowsStopStrings, "stop_strings"),
    (ScalesLogprobs, "logprobs"),
    (IgnoresTheBudget, "reasoning_budget"),
    (IgnoresGrammars, "grammar"),
    (Drifts, "determinism"),
    (DriftsInCompany, "batches"),
    (DriftsWhenWarm, "prefixes"),
    (BreaksWhenCancelled, "cancelling"),
    (StaysOpen, "closing"),
    (LosesText, "parsing"),
    (WaversUnderTopK, "narrow_filters"),
    (IgnoresTopP, "narrow_filters"),
    (IgnoresSeeds, "heat"),
    (IsAlwaysGreedy, "heat"),
    (AppliesNoPenalty, "penalties"),
    (MovesTheLikeliest, "logprobs"),
    (LosesWhatAStopStringMayBe, "stop_strings"),
    (CutsAStopAtTheLimit, "max_tokens"),
    (LeavesRoom, "context"),
    (CountsAllAsCached, "prefixes"),
    (KeepsThePlaceOfTheCancelled, "cancelling"),
    (DriftsInCompany, "joining_and_leaving"),
]


@pytest.mark.parametrize(("broken", "check"), BREAKS)
def test_an_engine_that_breaks_a_rule_fails_its_check(broken, check):
    with pytest.raises((AssertionError, ContextOverflow)):
        CHECKS[check](broken())


def test_every_check_can_fail():
    assert {check for _, check in BREAKS} == set(CHECKS)


def test_closing_twice_must_not_raise():
    with pytest.raises(EngineClosed):
        CHECKS["closing"](ClosesOnce())


def test_an_engine_without_features_passes():
    engine = Broken()
    engine.right.info = replace(engine.right.info, features=frozenset())
    for check in CHECKS.values():
        check(engine)


def test_an_engine_without_special_tokens_passes():
    class Legacy:
        def __init__(self):
            self.known = wrap(tiny_tokenizer())
            self.token_bytes, self.encode = self.known.token_bytes, self.known.encode

        def is_special(self, token_id):
            return (
                token_id > 255 and self.special_id(self.token_bytes(token_id).decode()) is not None
            )

        def special_id(self, text):
            return self.known.special_id(text) if text == wire.END_OF_TEXT else None

    engine = ScriptedEngine(babble, tokenizer=Legacy(), context=2000)
    assert isinstance(next(engine.generate(Request([1], GREEDY))).piece, str)
    for check in CHECKS.values():
        check(engine)
