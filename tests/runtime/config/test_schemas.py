"""One model, whatever its schema: and which schema it is, is told by names."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import MuseGlimmerConfig, MuseGlimmerTextConfig

from atem.errors import ConfigError
from atem.runtime.config import ModelConfig, layer_pattern
from atem.runtime.schemas import config_from_gguf, read_config, rope_style_of
from atem.testing.tiny import tiny_config
from tests.runtime.config.samples import GONE, flat, flattened, gguf, nested, refused, seeing

RELEASED = {"rope_type": "default", "rope_theta": 500000.0}


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    layers = draw(st.integers(1, 20))
    kv = draw(st.integers(1, 4))
    head_dim = draw(st.sampled_from([2, 4, 8, 16, 64, 128, 256]))
    return tiny_config(
        num_hidden_layers=layers,
        layer_types=tuple(
            draw(st.permutations(layer_pattern(layers)))
            if draw(st.booleans())
            else layer_pattern(layers)
        ),
        num_key_value_heads=kv,
        num_attention_heads=kv * draw(st.integers(1, 4)),
        head_dim=head_dim,
        hidden_size=draw(st.integers(1, 10**5)),
        sliding_window=draw(st.integers(1, 10**5)),
        rope_theta=float(draw(st.sampled_from([10000, 500000, 12345]))),
        rms_norm_eps=draw(st.sampled_from([1e-5, 1e-6])),
        output_multiplier=draw(st.sampled_from([0.125, 0.19611613])),
        tie_word_embeddings=draw(st.booleans()),
    )


@given(config=configs())
def test_every_schema_of_one_model_gives_one_configuration(config):
    assert read_config(nested(config)) == config
    assert read_config(flattened(config)) == config
    assert read_config(flat(config)) == config
    untied = config.model_copy(update={"tie_word_embeddings": False})
    assert config_from_gguf(gguf(config), config.qk_scale_factor) == untied


# ---- transformers


def as_transformers(raw: dict) -> MuseGlimmerConfig:
    return MuseGlimmerConfig(text_config={**raw["text_config"]})


def test_what_transformers_writes_for_the_released_model_is_read_as_it_reads_it():
    theirs = MuseGlimmerConfig(text_config={"rope_parameters": RELEASED})
    ours = read_config(theirs.to_dict())
    assert ours.vision
    for key in ModelConfig.model_fields.keys() - {"vision", "rope_theta", "layer_types"}:
        assert getattr(ours, key) == getattr(theirs.text_config, key), key
    assert list(ours.layer_types) == theirs.text_config.layer_types


def test_what_transformers_saves_is_read_as_what_it_holds(tmp_path):
    theirs = MuseGlimmerConfig(text_config={"rope_parameters": RELEASED, "num_hidden_layers": 6})
    theirs.save_pretrained(tmp_path)
    import json

    raw = json.loads((tmp_path / "config.json").read_text())
    assert read_config(raw) == read_config(theirs.to_dict())


@given(key=st.sampled_from(sorted(ModelConfig.model_fields.keys() - {"vision", "rope_theta"})))
def test_a_missing_key_is_what_transformers_fills_in(key):
    raw = {"model_type": "muse_glimmer", "text_config": {"rope_parameters": RELEASED}}
    theirs = MuseGlimmerTextConfig(rope_parameters=RELEASED)
    ours = getattr(read_config(raw), key)
    assert (list(ours) if key == "layer_types" else ours) == getattr(theirs, key)


@given(layers=st.integers(1, 60))
def test_missing_lists_are_those_of_transformers(layers):
    raw = nested(layer_types=GONE, layer_rope_theta=GONE, num_hidden_layers=layers)
    theirs = MuseGlimmerTextConfig(num_hidden_layers=layers, rope_parameters=RELEASED)
    ours = read_config(raw).layer_types
    assert list(ours) == theirs.layer_types
    assert [kind == "sliding_attention" for kind in ours] == [
        bool(t) for t in theirs.layer_rope_theta
    ]


def test_the_flattened_form_is_read_as_mlx_lm_reads_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from mlx_lm.models.muse_glimmer import ModelArgs
    raw = flattened(tiny_config(rope_theta=12345.0))
    theirs, ours = ModelArgs.from_dict(raw), read_config(raw)
    for key in ModelConfig.model_fields.keys() - {"vision", "layer_types"}:
        assert getattr(ours, key) == getattr(theirs, key), key
    assert list(ours.layer_types) == theirs.layer_types


# ---- names decide


@pytest.mark.parametrize("key", ["output_soft_cap_temp", "no_rope_layers", "rope_is_neox_style"])
def test_one_flat_key_is_proof_of_the_flat_schema(key):
    raw = {key: flat()[key], "head_dim": 16, "num_hidden_layers": 6, "qk_scale_factor": 15.48}
    assert read_config(raw).qk_scale_factor == 3.87
    assert rope_style_of(raw) == "pairs"


@pytest.mark.parametrize(
    "key", ["final_logit_softcapping", "layer_rope_theta", "hidden_activation"]
)
def test_one_hf_key_is_proof_of_hf_names(key):
    raw = {
        key: flattened()[key],
        "num_hidden_layers": 6,
        "rope_theta": 500000.0,
        "qk_scale_factor": 3.87,
    }
    assert read_config(raw).qk_scale_factor == 3.87
    assert rope_style_of(raw) is None


def test_keys_of_both_schemas_are_refused_by_name():
    refused(
        {**flat(), "final_logit_softcapping": 20.0}, "no_rope_layers", "final_logit_softcapping"
    )


def test_a_flat_key_beside_text_config_is_refused():
    refused({**nested(), "no_rope_layers": [1]}, "text_config", "no_rope_layers")


def test_keys_of_neither_schema_are_refused_whatever_the_factor():
    for factor in (3.87, 43.784):
        refused({"model_type": "muse_glimmer", "qk_scale_factor": factor}, "tells no schema")


def test_weaker_names_decide_where_no_proof_is():
    assert read_config({"hidden_act": "silu"}).max_position_embeddings == 16384
    assert read_config({"rope_parameters": RELEASED}).max_position_embeddings == 131072
    refused({"hidden_act": "silu", "rope_parameters": RELEASED}, "hidden_act", "rope_parameters")


def test_the_flat_defaults_are_the_flat_schemas_own():
    config = read_config({"rope_is_neox_style": False})
    assert config.max_position_embeddings == 16384
    assert config.qk_scale_factor == 3.87
    assert config.rope_theta == 500000.0
    assert config.layer_types == layer_pattern(52)


@pytest.mark.parametrize(("declared", "style"), [(True, "half"), (False, "pairs"), (GONE, "pairs")])
def test_a_flat_file_declares_the_order_of_its_rows(declared, style):
    assert rope_style_of(flat(rope_is_neox_style=declared)) == style


def test_hf_files_declare_no_order_of_rows():
    assert rope_style_of(nested()) is None
    assert rope_style_of(flattened()) is None


@pytest.mark.parametrize("value", [1, "true", None])
def test_the_order_of_rows_is_a_boolean(value):
    refused(flat(rope_is_neox_style=value), "rope_is_neox_style")
    with pytest.raises(ConfigError, match="rope_is_neox_style"):
        rope_style_of(flat(rope_is_neox_style=value))


# ---- whose configuration it is


@pytest.mark.parametrize("raw", [None, [], "{}", 3])
def test_anything_but_an_object_is_refused(raw):
    refused(raw, "JSON object")


@pytest.mark.parametrize("kind", ["llama", "", 3, ["muse_glimmer"]])
def test_another_model_is_refused_by_its_type(kind):
    refused({**nested(), "model_type": kind}, "model_type", "not a Muse Glimmer")


def test_another_model_inside_is_refused():
    refused(nested(model_type="llama"), "text_config.model_type")


def test_without_a_type_the_architectures_tell():
    raw = flat(model_type=GONE)
    assert read_config({**raw, "architectures": ["MuseGlimmerForCausalLM"]}) == tiny_config()
    refused({**raw, "architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM")


def test_a_drafter_is_told_apart():
    refused({"model_type": "muse_glimmer_assistant"}, "drafter")
    refused({**nested(), "architectures": ["MuseGlimmerAssistantModel"]}, "drafter")


def test_a_text_model_may_have_the_text_type_at_the_top():
    assert read_config(flattened(model_type="muse_glimmer_text")) == tiny_config()


def test_unknown_keys_are_left_alone():
    for raw in (nested(use_cache=True, surprise=1), flat(surprise=1, _name_or_path="x")):
        assert read_config(raw) == tiny_config()


# ---- one key at two places


def test_a_key_beside_text_config_has_to_repeat_it():
    assert read_config({**nested(), "hidden_size": 64, "rope_theta": 500000.0}) == tiny_config()
    refused({**nested(), "hidden_size": 65}, "hidden_size=65", "64")
    refused({**nested(), "layer_types": ["full_attention"] * 6}, "layer_types")
    refused({**nested(), "rope_theta": 10000.0}, "10000.0", "500000.0")


def test_a_key_beside_text_config_has_to_repeat_the_default_too():
    refused({**nested(post_norm_eps=GONE), "post_norm_eps": 1e-5}, "post_norm_eps=1e-05", "1e-08")


def test_the_outer_key_ties_as_in_transformers_which_writes_false_inside():
    inner = nested(tie_word_embeddings=False)
    assert read_config({**inner, "tie_word_embeddings": True}).tie_word_embeddings
    assert not read_config({**inner, "tie_word_embeddings": False}).tie_word_embeddings
    refused({**inner, "tie_word_embeddings": 1}, "tie_word_embeddings")


def test_vision_is_declared_or_not():
    assert read_config(seeing()) == tiny_config(vision=True)
    assert not read_config({**nested(), "vision_config": None}).vision
