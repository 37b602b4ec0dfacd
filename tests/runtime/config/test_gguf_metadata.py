"""GGUF metadata (model.md 4.4)."""

from __future__ import annotations

import gguf as gguf_files
import numpy as np
import pytest

from atem.errors import ConfigError
from atem.runtime.config import layer_pattern
from atem.runtime.schemas import config_from_gguf
from atem.testing.tiny import tiny_config
from tests.runtime.config.samples import GGUF_NAMES, GONE, gguf, says

OPTIONAL = {"vocab_size"}


def refused(metadata, *words, qk_scale=None):
    with pytest.raises(ConfigError) as caught:
        config_from_gguf(metadata, qk_scale)
    says(caught, *words)


def test_both_spellings_of_the_architecture_are_read():
    assert config_from_gguf(gguf(), 3.87) == tiny_config()
    assert config_from_gguf(gguf(prefix="muse_glimmer"), 3.87) == tiny_config()


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        ("llama", "not a Muse Glimmer"),
        ("clip", "mmproj"),
        ("dflash", "drafter"),
        (None, "None"),
        ([], "[]"),
    ],
)
def test_another_architecture_is_refused_by_name(architecture, words):
    refused({**gguf(), "general.architecture": architecture}, "general.architecture", words)


@pytest.mark.parametrize("key", sorted(GGUF_NAMES.keys() - OPTIONAL))
def test_a_key_that_is_not_optional_has_to_be_there(key):
    refused(gguf(**{key: GONE}), "muse-glimmer.*", f"{key} is missing")


@pytest.mark.parametrize("key", sorted(GGUF_NAMES))
@pytest.mark.parametrize("value", [True, "6", [6], 0, -1, None])
def test_a_key_has_a_number_above_0(key, value):
    refused(gguf(**{key: value}), key.removeprefix("muse-glimmer."))


def test_numbers_of_a_real_file_give_the_configuration_they_were_written_from(tmp_path):
    """float32 on disk: 1e-5 and 0.19611613 come back as written, by gguf's own writer and reader."""
    path = tmp_path / "tiny.gguf"
    config = tiny_config(output_multiplier=0.19611613, rms_norm_eps=1e-5)
    writer = gguf_files.GGUFWriter(path, "muse-glimmer")
    for key, value in gguf(config).items():
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
    writer.add_tensor("blk.0.attn_q_norm.weight", np.full(16, 3.87, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    reader = gguf_files.GGUFReader(path)
    metadata = {key: field.contents() for key, field in reader.fields.items()}
    constant = float(reader.tensors[0].data[0])
    assert constant != 3.87
    assert config_from_gguf(metadata, constant) == config


def test_numpy_values_are_read_as_what_they_hold():
    metadata = {
        key: np.asarray(value)[()] for key, value in gguf().items() if key != "general.architecture"
    }
    metadata["general.architecture"] = "muse-glimmer"
    assert config_from_gguf(metadata, np.float32(3.87)) == tiny_config()


# ---- layers


def test_the_pattern_may_be_an_array_of_booleans():
    pattern = [True, False, False, True, True, False]
    types = config_from_gguf(gguf(attention__sliding_window_pattern=pattern), None).layer_types
    assert [kind == "sliding_attention" for kind in types] == pattern


@pytest.mark.parametrize(("layers", "full"), [(8, [3, 7]), (6, [3])])
def test_the_pattern_may_be_a_period_counted_from_the_front(layers, full):
    config = tiny_config(num_hidden_layers=layers)
    types = config_from_gguf(gguf(config, attention__sliding_window_pattern=4), None).layer_types
    assert [i for i, kind in enumerate(types) if kind == "full_attention"] == full


def test_a_missing_pattern_is_counted_from_the_last_layer():
    metadata = gguf(attention__sliding_window_pattern=GONE)
    assert config_from_gguf(metadata, None).layer_types == layer_pattern(6)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ([True] * 5, "5 entries"), (0, "period above 0"), (-4, "period"), (True, "period"),
        (4.0, "period"), ("4", "period"), ([True, 2, True, "x", 1, 0], "at layers 1, 3"),
    ],
)  # fmt: skip
def test_any_other_pattern_is_refused(pattern, words):
    refused(gguf(attention__sliding_window_pattern=pattern), "sliding_window_pattern", words)


# ---- the factor on q


def test_a_file_without_q_norms_has_the_released_factor():
    assert config_from_gguf(gguf(), None).qk_scale_factor == 3.87


def test_the_q_norm_gives_the_factor():
    assert config_from_gguf(gguf(), 4.5).qk_scale_factor == 4.5


@pytest.mark.parametrize(
    "constant", [43.784, 15.48, 0.0, -3.87, float("nan"), float("inf"), True, "3.87", 10**400]
)
def test_a_q_norm_that_cannot_be_the_factor_is_refused(constant):
    refused(gguf(), "attn_q_norm", qk_scale=constant)


@pytest.mark.parametrize("scale", [3.87, 3.84, 3.90, 3.87 / 4, 0.96])
def test_attention_scale_is_read_in_either_meaning_and_changes_nothing(scale):
    assert config_from_gguf(gguf(attention__scale=scale), 3.87) == tiny_config()


@pytest.mark.parametrize("scale", [3.87 * 1.02, 3.87 / 4 * 0.98, 1.0, 3.87 * 4, 0.25])
def test_attention_scale_of_neither_meaning_is_refused(scale):
    refused(gguf(attention__scale=scale), "attention.scale", "3.87", "0.9675", qk_scale=3.87)


def test_attention_scale_is_held_against_the_files_own_q_norm():
    assert config_from_gguf(gguf(attention__scale=4.5), 4.5).qk_scale_factor == 4.5
    refused(gguf(attention__scale=3.87), "attention.scale", qk_scale=4.5)


# ---- the rest


def test_the_post_norm_epsilon_is_the_models_unless_the_file_has_one():
    assert config_from_gguf(gguf(), None).post_norm_eps == 1e-8
    metadata = gguf(attention__post_norm_rms_epsilon=1e-6)
    assert config_from_gguf(metadata, None).post_norm_eps == 1e-6


def test_the_vocabulary_is_counted_where_its_size_is_missing():
    tokens = {"tokenizer.ggml.tokens": ["x"] * 320}
    assert config_from_gguf({**gguf(vocab_size=GONE), **tokens}, None) == tiny_config()
    refused(gguf(vocab_size=GONE), "vocab_size", "tokenizer.ggml.tokens")


def test_tokens_fit_into_the_vocabulary():
    refused({**gguf(), "tokenizer.ggml.tokens": ["x"] * 321}, "321", "vocab_size=320")
    padded = {**gguf(), "tokenizer.ggml.tokens": ["x"] * 300}
    assert config_from_gguf(padded, None).vocab_size == 320


@pytest.mark.parametrize("value", [320, -1, True, "1"])
def test_token_ids_are_in_the_vocabulary(value):
    refused({**gguf(), "tokenizer.ggml.eot_token_id": value}, "eot_token_id", "319")


def test_head_sizes_and_thetas_have_to_agree():
    refused(gguf(attention__value_length=32), "value_length=32", "key_length=16")
    refused(gguf(rope__dimension_count=8), "rope.dimension_count=8", "key_length=16")
    refused(gguf(rope__freq_base_swa=1e4), "freq_base_swa=10000.0", "freq_base=500000.0")
    assert config_from_gguf(gguf(rope__freq_base_swa=5e5, rope__dimension_count=16), None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope.scaling.type", "yarn"), ("rope.scaling.factor", 4.0), ("expert_count", 8),
        ("attention.causal", False), ("attn_logit_softcapping", 50.0), ("embedding_scale", 12.0),
    ],
)  # fmt: skip
def test_another_computation_is_refused_by_its_key(key, value):
    refused(gguf(**{key: value}), key, "another computation")


def test_keys_that_change_nothing_are_read():
    metadata = gguf(rope__scaling__type="none", rope__scaling__factor=1.0, expert_count=0)
    assert config_from_gguf(metadata, None) == tiny_config()


def test_sizes_that_do_not_go_together_are_refused():
    refused(gguf(attention__head_count_kv=3), "num_attention_heads=4", "num_key_value_heads=3")


def test_the_released_numbers_as_float32_are_the_released_numbers():
    numbers = {"rms_norm_eps": 1e-5, "post_norm_eps": 1e-8, "rope_theta": 500000.0}
    stored = {key: float(np.float32(value)) for key, value in numbers.items()}
    metadata = gguf(
        attention__layer_norm_rms_epsilon=stored["rms_norm_eps"],
        attention__post_norm_rms_epsilon=stored["post_norm_eps"],
        rope__freq_base=stored["rope_theta"],
    )
    config = config_from_gguf(metadata, float(np.float32(3.87)))
    assert {key: getattr(config, key) for key in numbers} == numbers
    assert config.qk_scale_factor == 3.87
