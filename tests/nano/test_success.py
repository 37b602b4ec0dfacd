"""The shipped model does tasks it has not seen, on both engines, token for token alike.

Rules: everything is generated greedily and goes through parser and real tools, by
examples/nano/evaluate.py. A floor is asserted where there are enough tasks for one; docs/nano.md
has the figures.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from evaluate import Result, cases, run_all, table
from families import FAMILIES
from recorder import Recorder, Written, conversations

import atem
from atem.runtime.embedded import located
from atem.runtime.layouts import open_checkpoint
from atem.runtime.reference.model import Model
from tests.nano.copies import MAKERS

if TYPE_CHECKING:
    from conversations import Sample

NANO = Path(located("nano"))
FLOOR = 0.95
LEAST = 0.9
"""Of a family alone."""
EACH = 19
"""Held-out tasks of each family: with eleven families more than 200, and a floor means something."""
EACH_OF_A_COPY = 6
TIE = 1e-3
"""Logits closer than this could change places with the order of sums."""

pytestmark = pytest.mark.timeout(400)

Found = dict[str, list[Result]]


def success(found: Found) -> float:
    results = [result for family in found.values() for result in family]
    return sum(result.success for result in results) / len(results)


def first(found: Found, each: int) -> Found:
    return {family: results[:each] for family, results in found.items()}


def evaluate(engine: atem.Engine, each: int) -> Found:
    return {name: run_all(engine, cases("held out", name, each)) for name in FAMILIES}


@pytest.fixture(scope="module")
def by_torch() -> tuple[Found, list[Written]]:
    """What torch made of the sample, and all that it wrote."""
    with closing(Recorder(atem.load("nano", backend="torch"))) as engine:
        return evaluate(engine, EACH), engine.turns


def test_held_out_tasks_are_done(by_torch: tuple[Found, list[Written]]) -> None:
    found, _ = by_torch
    assert success(found) >= FLOOR, "\n" + table({"held out": found})


def test_turns_are_well_formed(by_torch: tuple[Found, list[Written]]) -> None:
    results = [result for family in by_torch[0].values() for result in family]
    turns = sum(result.turns for result in results)
    assert sum(result.well_formed for result in results) >= 0.99 * turns


def test_the_reference_engine_does_as_torch_does(by_torch: tuple[Found, list[Written]]) -> None:
    with closing(atem.load("nano", backend="reference")) as engine:
        ours = evaluate(engine, 1)
    theirs = first(by_torch[0], 1)
    for family, (result,) in ours.items():
        other = theirs[family][0]
        assert (result.calls, result.answer) == (other.calls, other.answer)


def test_each_token_of_200_conversations_is_the_reference_models_first_choice(
    by_torch: tuple[Found, list[Written]],
) -> None:
    """Then the reference writes the same, by induction: its first choice follows the same tokens.

    One pass over a conversation scores all of its turns. The engines' logits differ by about
    1e-4, by the order of sums; that no first choice is nearer than that to the second is asserted
    too, or the outcome would be this machine's.
    """
    found, turns = by_torch
    assert sum(map(len, found.values())) >= 200
    with open_checkpoint(NANO) as checkpoint:
        weights = {name: checkpoint.read(name).astype(np.float32) for name in checkpoint.tensors}
        model = Model(checkpoint.config, weights.__getitem__)
    scored = [_scored(model, sample) for sample in conversations(turns)]
    chosen, written, margin = (np.concatenate(each) for each in zip(*scored, strict=True))
    assert len(written) == sum(len(turn.output) for turn in turns)
    assert margin.min() > TIE
    assert (chosen == written).all(), f"{(chosen != written).sum()} of {len(written)} differ"


def _scored(model: Model, sample: Sample) -> tuple[np.ndarray, ...]:
    """The model's first choice at each place, what was written, and how far the second is."""
    hidden = model.hidden(sample.ids[:-1], model.caches(len(sample.ids)))
    logits = model.logits(hidden[sample.learnt[1:]])
    second, best = np.partition(logits, -2)[:, -2:].T
    return logits.argmax(-1), np.array(sample.ids)[sample.learnt], best - second


def test_a_copy_in_eight_bits_does_nearly_as_many(
    by_torch: tuple[Found, list[Written]], tmp_path: Path
) -> None:
    with closing(atem.load(MAKERS["q8_0"](NANO, tmp_path / "copy"), backend="torch")) as engine:
        assert engine.info.layout == "gguf"
        found = evaluate(engine, EACH_OF_A_COPY)
    assert success(found) >= FLOOR * success(first(by_torch[0], EACH_OF_A_COPY)), table({"": found})


def test_a_copy_in_four_bits_runs(
    by_torch: tuple[Found, list[Written]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How well is measured and not promised: so small a model has no bits to spare."""
    with closing(atem.load(MAKERS["mlx_4bit"](NANO, tmp_path / "copy"), backend="torch")) as engine:
        assert engine.info.layout == "mlx"
        found = evaluate(engine, 3)
    with capsys.disabled():
        share, whole = success(found), success(first(by_torch[0], 3))
        print(f"\n4 bits: {100 * share:.0f} % of tasks done, {100 * whole:.0f} % in bfloat16")  # noqa: T201
    assert any(result.well_formed for family in found.values() for result in family)


@pytest.mark.long
def test_every_family_is_done() -> None:
    """All together; docs/nano.md names the family that falls short of it alone."""
    with closing(atem.load("nano", backend="torch")) as engine:
        found = evaluate(engine, 60)
    shown = "\n" + table({"held out": found})
    assert success(found) >= FLOOR, shown
    assert all(success({name: results}) >= LEAST for name, results in found.items()), shown
