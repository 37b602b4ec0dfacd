"""The doctor finds nano whole, and says of a damaged copy what is wrong with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import atem
from atem.runtime.embedded import located
from atem.runtime.layouts import open_checkpoint
from atem.runtime.probe import AS_READ, OTHER_ROPE, open_settled, probe_readings
from atem.runtime.probe_texts import TOOL_CALLS, Text
from atem.runtime.tokens import load_tokenizer
from tests.runtime.layouts import writers

if TYPE_CHECKING:
    from collections.abc import Callable

    from atem.testing.tiny import Weights

NANO = Path(located("nano"))
MATRICES = ("q", "k", "v", "o", "gate", "ffn_gate", "ffn_up", "ffn_down")


@pytest.fixture(scope="module")
def weights() -> Weights:
    with open_checkpoint(NANO) as checkpoint:
        return {name: np.array(checkpoint.read(name), np.float32) for name in checkpoint.tensors}


def copied(folder: Path, weights: Weights) -> Path:
    """nano with these canonical weights, under its own names."""
    for file in filter(Path.is_file, NANO.iterdir()):
        shutil.copy(file, folder)
    with open_checkpoint(NANO) as checkpoint:
        tensors = writers.hf(checkpoint.config, weights)
    assert set(tensors) == set(load_file(NANO / "model.safetensors"))
    save_file({name: np.ascontiguousarray(each) for name, each in tensors.items()},
              folder / "model.safetensors")  # fmt: skip
    return folder


def failures(path: Path) -> dict[str, str]:
    found = atem.doctor(path, backend="reference")
    assert found.ok is all(check.verdict != "fail" for check in found.checks)
    return {
        check.name: f"{check.found} ({check.advice})"
        for check in found.checks
        if check.verdict == "fail"
    }


def changed(weights: Weights, ends: str | tuple[str, ...], change: Callable) -> Weights:
    return {name: change(each) if name.endswith(ends) else each for name, each in weights.items()}


def test_every_check_of_nano_is_ok() -> None:
    assert {check.verdict for check in atem.doctor("nano").checks} == {"ok"}


def test_the_two_orders_of_rows_lie_far_apart() -> None:
    with open_checkpoint(NANO) as checkpoint:
        found = probe_readings(checkpoint, load_tokenizer(checkpoint))
    assert (found.text, found.best, found.good) == (TOOL_CALLS, AS_READ, True)
    assert found.losses[OTHER_ROPE] > found.chance / 2


def test_the_text_is_spelt_as_an_agents_prompts_are() -> None:
    parts = TOOL_CALLS.parts
    with open_checkpoint(NANO) as checkpoint:
        tokenizer = load_tokenizer(checkpoint)
    user = parts[0].rpartition("<|message|>")[2].partition("<|eot|>")[0]
    tools = atem.ToolSet([*atem.agent.file_tools(NANO, allow_write=True), atem.agent.calculate])
    prompt = atem.render([atem.Message("user", user)], tools=tools, reasoning_strength="xhigh")
    assert prompt.token_ids(tokenizer) == Text("", 0, parts[:1]).spelt(tokenizer).ids


@pytest.mark.parametrize("share", [1, 3], ids=["all rows", "every third row"])
def test_rows_that_are_nearly_nothing_fail_the_check_of_the_table(
    weights: Weights, tmp_path: Path, share: int
) -> None:
    table = weights["embed"].copy()
    table[::share] *= 1e-4 / np.sqrt(np.square(table).mean())
    found = failures(copied(tmp_path, weights | {"embed": table}))
    assert "so small that the epsilon of their norm (1e-05)" in found["embedding"]


def test_an_epsilon_as_large_as_the_rows_fails_the_check_of_the_table(
    weights: Weights, tmp_path: Path
) -> None:
    folder = copied(tmp_path, weights)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["rms_norm_eps"] = 100.0
    (folder / "config.json").write_text(json.dumps(config))
    assert "epsilon of their norm (100)" in failures(folder)["embedding"]


@pytest.mark.parametrize(
    ("ends", "by", "named"),
    [
        ("_norm", 1, "better with 1 taken off the norms"),
        ("_norm", -1, "better with 1 added to the norms"),
        ("norm", 1, "better with 1 taken off the norms"),
        ("norm", -1, "better with 1 added to the norms"),
    ],
    ids=["1 more", "1 less", "1 more and in the last norm", "1 less and in the last norm"],
)
def test_norms_in_the_other_form_fail_the_check_of_the_reading(
    weights: Weights, tmp_path: Path, ends: str, by: int, named: str
) -> None:
    found = failures(copied(tmp_path, changed(weights, ends, lambda values: values + by)))
    assert list(found) == ["reading"]
    assert named in found["reading"]


def test_rows_in_pairs_that_are_labelled_half_fail_the_check_of_the_reading(
    weights: Weights, tmp_path: Path
) -> None:
    with open_checkpoint(NANO) as checkpoint:
        pairs = writers.ordered(checkpoint.config, weights, "pairs")
    found = failures(copied(tmp_path, pairs))
    assert list(found) == ["reading"]
    assert "better with q and k rows in the other order" in found["reading"]


@pytest.mark.parametrize("part", ["q", "k"])
def test_rows_in_pairs_in_one_of_q_and_k_fit_no_reading(
    weights: Weights, tmp_path: Path, part: str
) -> None:
    with open_checkpoint(NANO) as checkpoint:
        pairs = writers.ordered(checkpoint.config, weights, "pairs")
    half = {name: pairs[name] if name.endswith(f".{part}") else weights[name] for name in weights}
    assert "damaged or hardly trained" in failures(copied(tmp_path, half))["reading"]


def test_weights_that_are_noise_fit_no_reading(weights: Weights, tmp_path: Path) -> None:
    seed = np.random.default_rng(4)
    noise = changed(
        weights, MATRICES, lambda values: seed.normal(0, values.std(), values.shape).astype("f")
    )
    assert "damaged or hardly trained" in failures(copied(tmp_path, noise))["reading"]


@pytest.mark.parametrize("style", ["pairs", "half"])
def test_an_old_export_of_nano_is_decided_by_the_loss(
    weights: Weights, tmp_path: Path, style: str
) -> None:
    with open_checkpoint(NANO) as checkpoint:
        config = checkpoint.config
    _, meant = writers.old(config, weights)  # rows of RMS 1, which leave the order open
    with open_settled(copied(tmp_path, writers.ordered(config, meant, style))) as checkpoint:
        assert checkpoint.rope_style == style
        np.testing.assert_array_equal(checkpoint.read("layers.2.k"), weights["layers.2.k"])
