"""A checkup finds each kind of damage by its own check, and a whole model whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import atem
from atem.runtime.probe_texts import Text
from atem.testing.tiny import tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.layouts import writers

CONFIG = tiny_config()
TEMPLATE = (
    "{{ bos_token }}{{ '<|start|>user<|message|>' + messages[0].content + '<|eot|>' }}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
)


def examined(folder, **options):
    found = atem.doctor(folder, backend="reference", **options)
    return found, {check.name: check for check in found.checks}


def copy(folder, weights, **changes):
    return tiny_checkpoint(folder, config=CONFIG, weights=dict(weights) | changes)


def test_a_whole_model_passes_every_check(weights, tmp_path):
    found, checks = examined(copy(tmp_path, weights))
    assert found.ok
    assert list(checks) == ["files", "embedding", "tokenizer", "template", "reading", "speed"]
    assert checks["reading"].verdict == "ok"


def test_the_speed_is_of_a_real_run_whose_prompt_is_reused(weights, tmp_path):
    _, checks = examined(copy(tmp_path, weights))
    assert "tokens/s" in checks["speed"].found
    assert " 0 tokens reused" not in checks["speed"].found


def test_rows_that_no_norm_can_lift_fail_the_embedding_check(weights, tmp_path):
    table = np.array(weights["embed"])
    table[::4] *= 1e-5
    found, checks = examined(copy(tmp_path, weights, embed=table))
    assert not found.ok
    assert checks["embedding"].verdict == "fail"


def test_rows_that_hold_no_numbers_fail_the_embedding_check(weights, tmp_path):
    table = np.array(weights["embed"])
    table[::8] = np.nan
    _, checks = examined(copy(tmp_path, weights, embed=table), probe=False)
    assert checks["embedding"].verdict == "fail"
    assert "not finite" in checks["embedding"].found


def test_a_table_of_any_width_is_looked_at_within_limits(weights, tmp_path, monkeypatch):
    monkeypatch.setattr("atem.checkup.LOOK", 10 * CONFIG.hidden_size)
    _, checks = examined(copy(tmp_path, weights), probe=False)
    assert "10 rows looked at" in checks["embedding"].found


@pytest.mark.parametrize(
    "damage",
    [
        lambda w: writers.ordered(CONFIG, w, "pairs"),
        lambda w: {n: v - 1 if n.endswith("_norm") else v for n, v in w.items()},
        lambda w: tiny_weights(CONFIG, seed=9),
    ],
    ids=["q and k permuted", "an offset lost", "random weights"],
)
def test_a_model_that_is_read_wrong_fails_the_reading_check(weights, tmp_path, damage):
    found, checks = examined(copy(tmp_path, damage(weights)))
    assert not found.ok
    assert checks["reading"].verdict == "fail"


def test_a_right_reading_that_predicts_too_little_fails_the_reading_check(
    weights, tmp_path, monkeypatch
):
    folder = copy(tmp_path, weights)
    probed = atem.checkup.probe_readings
    hard = Text("hard text", 0.0, ())
    monkeypatch.setattr(
        "atem.checkup.probe_readings",
        lambda *given, **more: replace(probed(*given, **more), text=hard),
    )
    _, checks = examined(folder)
    assert checks["reading"].verdict == "fail"
    assert "hard text" in checks["reading"].found
    assert "damaged, or trained too little" in checks["reading"].advice


def test_a_probe_that_is_not_wanted_is_skipped_and_said_to_be(weights, tmp_path):
    _, checks = examined(copy(tmp_path, weights), probe=False)
    assert checks["reading"].verdict == "skipped"


def test_files_that_cannot_be_opened_are_the_only_check(tmp_path):
    found, checks = examined(tmp_path / "nothing")
    assert (found.ok, list(checks)) == (False, ["files"])


def test_a_missing_tokenizer_fails_and_the_rest_is_skipped(weights, tmp_path):
    (copy(tmp_path, weights) / "tokenizer.json").unlink()
    found, checks = examined(tmp_path)
    assert not found.ok
    assert checks["tokenizer"].verdict == "fail"
    assert {checks["reading"].verdict, checks["speed"].verdict} == {"skipped"}


def test_files_that_stop_at_the_end_of_a_message_are_warned_of(weights, tmp_path):
    copy(tmp_path, weights)
    eom = atem.testing.tiny.tiny_tokenizer().token_to_id("<|eom|>")
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [eom]}))
    _, checks = examined(tmp_path)
    assert checks["tokenizer"].verdict == "warn"
    assert "<|eom|>" in checks["tokenizer"].found


@pytest.mark.parametrize(
    ("template", "verdict", "text"),
    [
        (TEMPLATE, "warn", "differs from atem's prompt at character 26"),
        ("{{ ''.__class__.__mro__ }}", "fail", "no template needs"),
        ("{% generation %}x{% endgeneration %}", "warn", "the chat template fails"),
        (None, "warn", "none"),
    ],
)
def test_the_template_is_compared_in_its_sandbox(weights, tmp_path, template, verdict, text):
    copy(tmp_path, weights)
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    _, checks = examined(tmp_path)
    assert checks["template"].verdict == verdict
    assert text in checks["template"].found


def test_a_template_of_the_format_writes_the_same_prompt(weights, tmp_path):
    source = Path(__file__).parents[2] / "render" / "template.jinja"
    copy(tmp_path, weights)
    (tmp_path / "chat_template.jinja").write_text(source.read_text())
    _, checks = examined(tmp_path)
    assert checks["template"].verdict == "ok", checks["template"].found


def test_a_wrong_option_is_an_exception(weights, tmp_path):
    with pytest.raises(atem.OptionError, match="no option"):
        atem.doctor(copy(tmp_path, weights), backend="reference", colour="red")
