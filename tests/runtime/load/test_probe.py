"""The loss decides which reading of the weights is right, and says so when it can't."""

from __future__ import annotations

import math

import numpy as np
import pytest

from atem import Message, ToolSet, parse, render
from atem.agent import calculate, file_tools
from atem.errors import CheckpointError, RopeUndecided
from atem.runtime import probe as module
from atem.runtime.layouts import open_checkpoint
from atem.runtime.probe import OTHER_ROPE, Probe, open_settled, probe_readings
from atem.runtime.probe_texts import PLAIN, TOOL_CALLS, Text
from atem.runtime.tokens import load_tokenizer
from atem.testing.tiny import tiny_checkpoint, tiny_config, tiny_tokenizer, tiny_weights
from atem.tokenizer import wrap
from tests.runtime.layouts import writers
from tests.runtime.oracle import oracle, oracle_logits

CONFIG = tiny_config()


def written(folder, tensors):
    """A multimodal export of ``tensors`` (stored names)."""
    tiny_checkpoint(folder, config=CONFIG, weights={})
    writers.save_file(dict(tensors), folder / "model.safetensors")
    return folder


def probed(folder, **options):
    with open_checkpoint(folder, **options) as checkpoint:
        return probe_readings(checkpoint, load_tokenizer(checkpoint))


def old_export(folder, weights):
    """As the older converter wrote it: pairs, and a table whose rows have an RMS of 1."""
    return written(folder, writers.old(CONFIG, weights)[0])


@pytest.mark.parametrize(
    "text",
    [PLAIN, Text("some of it", 0.5, ("<|begin_of_text|>Say", " one, two", " and", " go<|eot|>"))],
)
def test_the_loss_is_that_of_transformers_on_what_is_judged(weights, tmp_path, monkeypatch, text):
    monkeypatch.setattr(module, "PLAIN", text)
    ids, judged = text.spelt(wrap(tiny_tokenizer()))
    logits = oracle_logits(oracle(CONFIG, weights), ids[:-1]).astype(np.float64)
    chances = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = -chances[np.arange(len(ids) - 1), ids[1:]][judged[1:]].mean()
    result = probed(tiny_checkpoint(tmp_path, config=CONFIG, weights=weights))
    assert result.losses["as read"] == pytest.approx(expected, abs=1e-4)


def test_what_the_model_writes_is_judged_and_nothing_else():
    tokenizer = wrap(tiny_tokenizer())
    ids, judged = TOOL_CALLS.spelt(tokenizer)
    kept = [token for token, each in zip(ids, judged, strict=True) if each]
    assert b"".join(map(tokenizer.token_bytes, kept)).decode() == "".join(TOOL_CALLS.parts[1::2])


def test_the_text_of_tool_calls_is_what_atem_renders(tmp_path):
    tools = ToolSet([*file_tools(tmp_path, allow_write=True), calculate])
    tokenizer = wrap(tiny_tokenizer())
    written, turns = [], iter(TOOL_CALLS.parts[1::2])
    conversation = [
        "Read notes.txt and tell me the line about milk.",
        "bread: two\nmilk: green bottle\ntea: none",
        "What is 27 plus 15?",
        calculate(expression="27 + 15"),
    ]
    for number, said in enumerate(conversation):
        calls = [call for message in written[-2:] for call in getattr(message, "calls", ())]
        written.append(
            Message("tool", said, name=calls[0].wire_name, call_id=calls[0].id)
            if calls
            else Message("user", said)
        )
        prompt = render(written, tools=tools, reasoning_strength="xhigh")
        parts = TOOL_CALLS.parts[: 2 * number + 1]
        assert prompt.text() == "".join(parts)
        assert prompt.token_ids(tokenizer) == Text("", 0, parts).spelt(tokenizer).ids
        turn = parse(next(turns), tools=tools, reason="stop")
        assert turn.complete
        written += turn.messages


def test_a_right_file_is_found_right(weights, tmp_path):
    result = probed(tiny_checkpoint(tmp_path, config=CONFIG, weights=weights))
    assert result.verdict == "right"


@pytest.mark.parametrize(
    ("damage", "best"),
    [
        (lambda w: writers.ordered(CONFIG, w, "pairs"), OTHER_ROPE),
        (
            lambda w: {n: v + 1 if n.endswith("_norm") else v for n, v in w.items()},
            "with 1 taken off the norms",
        ),
        (
            lambda w: {n: v - 1 if n.endswith("_norm") else v for n, v in w.items()},
            "with 1 added to the norms",
        ),
    ],
    ids=["q and k permuted", "absolute norms", "an offset lost"],
)
def test_a_damaged_file_is_found_wrong_and_the_damage_named(weights, tmp_path, damage, best):
    result = probed(tiny_checkpoint(tmp_path, config=CONFIG, weights=damage(weights)))
    assert (result.verdict, result.best) == ("wrong", best)


def test_random_weights_are_unclear(tmp_path):
    assert probed(tiny_checkpoint(tmp_path, seed=3)).verdict == "unclear"


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ((1.0, 2.0), "right"),
        ((math.inf, 2.0), "wrong"),
        ((math.inf, math.inf), "unclear"),
        ((2.0, 1.0), "wrong"),
        ((1.0, 1.05), "unclear"),
        ((1.05, 1.0), "unclear"),
        ((4.5, 5.5), "unclear"),
    ],
)
def test_a_reading_must_predict_and_be_better_by_a_margin(losses, verdict):
    assert Probe(dict(zip(("as read", OTHER_ROPE), losses, strict=True)), 5.8).verdict == verdict


@pytest.mark.parametrize(("text", "good"), [(PLAIN, True), (TOOL_CALLS, False)])
def test_calls_that_are_there_to_be_copied_must_be_predicted_better(text, good):
    assert Probe({"as read": 2.0, OTHER_ROPE: 7.0}, 6.9, text).good is good


def test_the_text_that_is_predicted_better_decides(weights, tmp_path, monkeypatch):
    unknown = Text("unknown", 0.7, ("<|begin_of_text|>", "qZ#7 vY!x"))
    folder = tiny_checkpoint(tmp_path, config=CONFIG, weights=weights)
    for plain, calls in [(PLAIN, unknown), (unknown, PLAIN)]:
        monkeypatch.setattr(module, "PLAIN", plain)
        monkeypatch.setattr(module, "TOOL_CALLS", calls)
        assert (probed(folder).text, probed(folder).verdict) == (PLAIN, "right")


def test_a_text_that_is_predicted_well_decides_before_one_that_had_to_be_easier(
    weights, tmp_path, monkeypatch
):
    before, last = "".join(PLAIN.parts).rsplit("Again:", 1)
    easier = Text("its end", 0.0, (before, "Again:" + last))
    folder = tiny_checkpoint(tmp_path, config=CONFIG, weights=weights)
    found = []
    for plain, calls in [(easier, easier), (PLAIN, easier)]:
        monkeypatch.setattr(module, "PLAIN", plain)
        monkeypatch.setattr(module, "TOOL_CALLS", calls)
        found.append(probed(folder))
    assert found[0].losses["as read"] < found[1].losses["as read"]
    assert found[1].text == PLAIN


@pytest.mark.parametrize(("limit", "texts"), [("SMALL", 1), ("LONGEST", 1), (None, 2)])
def test_a_large_model_and_one_of_bytes_read_the_short_text_alone(
    weights, tmp_path, monkeypatch, limit, texts
):
    monkeypatch.setattr(module, "TOOL_CALLS", Text("short", 0.1, ("<|begin_of_text|>", "a")))
    if limit is not None:
        monkeypatch.setattr(module, limit, 1)
    seen = []
    with open_checkpoint(tiny_checkpoint(tmp_path, config=CONFIG, weights=weights)) as checkpoint:
        probe_readings(checkpoint, load_tokenizer(checkpoint), progress=seen.append)
    assert [progress.done for progress in seen] == [0, 1, 2, 3] * texts


def test_an_old_export_is_decided_by_the_loss(weights, tmp_path):
    with open_settled(old_export(tmp_path, weights)) as checkpoint:
        assert checkpoint.rope_style == "pairs"
        np.testing.assert_array_equal(checkpoint.read("layers.0.q"), weights["layers.0.q"])


def test_a_new_export_with_a_normalised_table_is_decided_by_the_loss(weights, tmp_path):
    _, meant = writers.old(CONFIG, weights)
    folder = tiny_checkpoint(tmp_path, config=CONFIG, weights=meant)
    with open_settled(folder) as checkpoint:
        assert checkpoint.rope_style == "half"


def test_in_doubt_an_old_export_is_refused_with_what_to_set(tmp_path):
    folder = old_export(tmp_path, tiny_weights(CONFIG))
    with pytest.raises(RopeUndecided, match=r"rope_style='pairs'.*could not tell"):
        open_settled(folder)


def test_without_a_probe_an_old_export_is_refused(weights, tmp_path):
    folder = old_export(tmp_path, weights)
    with pytest.raises(RopeUndecided, match="rope_style"):
        open_settled(folder, probe=False)


def test_a_large_model_is_probed_only_when_asked(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SMALL", 1000)
    folder = old_export(tmp_path, weights)
    with pytest.raises(RopeUndecided):
        open_settled(folder)
    with open_settled(folder, probe=True) as checkpoint:
        assert checkpoint.rope_style == "pairs"


def test_a_given_order_is_not_probed(weights, tmp_path):
    seen = []
    with open_settled(
        old_export(tmp_path, weights), rope_style="half", progress=seen.append
    ) as checkpoint:
        assert (checkpoint.rope_style, seen) == ("half", [])


def test_a_tokenizer_without_framing_cannot_be_probed():
    class Bare:
        special_id = staticmethod(lambda text: None)

    with pytest.raises(CheckpointError, match="begin_of_text"):
        PLAIN.spelt(Bare())
