"""Each rule of model.md 3.4: what breaks it is refused, with the keys and places in the message."""

from __future__ import annotations

import pytest

from atem.runtime.schemas import read_config
from atem.testing.tiny import tiny_config
from tests.runtime.config.samples import GONE, flat, flattened, nested, refused, seeing

FORMS = pytest.mark.parametrize("form", [nested, flattened, flat])
SIX = ["sliding_attention", "full_attention"] * 3


# ---- 1: activation


@pytest.mark.parametrize("value", ["gelu", "swish", None, 1])
@pytest.mark.parametrize("key", ["hidden_activation", "hidden_act"])
def test_the_activation_is_silu(key, value):
    form = flat if key == "hidden_act" else nested
    refused(form(**{key: value}), key, "silu")


def test_the_other_schemas_name_of_the_activation_is_looked_at_too():
    refused(nested(hidden_act="gelu"), "text_config.hidden_act")


# ---- 2: heads


@FORMS
def test_query_heads_are_a_multiple_of_key_value_heads(form):
    refused(form(num_key_value_heads=3), "num_attention_heads=4", "num_key_value_heads=3")


# ---- 3: lists


@FORMS
def test_layer_types_has_one_entry_for_each_layer(form):
    refused(form(layer_types=SIX[:5]), "layer_types has 5 entries for 6 layers")


@FORMS
def test_layer_types_has_known_values_only(form):
    wrong = [*SIX[:2], "chunked_attention", 7, None, *SIX[5:]]
    refused(form(layer_types=wrong), "layer_types[2]", "chunked_attention", "layers 2, 3, 4")


def test_the_rope_lists_have_one_entry_for_each_layer():
    refused(nested(layer_rope_theta=[0.0] * 7), "layer_rope_theta has 7 entries for 6 layers")
    refused(flat(no_rope_layers=[1]), "no_rope_layers has 1 entries for 6 layers")


@pytest.mark.parametrize("value", ["full_attention", 6, {}, True])
def test_a_list_is_a_list(value):
    refused(nested(layer_types=value), "layer_types", "it is a list")
    refused(nested(layer_rope_theta=value), "layer_rope_theta", "it is a list")
    refused(flat(no_rope_layers=value), "no_rope_layers", "it is a list")


# ---- 4: full attention exactly where rope is off


def test_full_attention_with_rope_is_refused_at_its_layers():
    thetas = [5e5, 0, 0, 5e5, 5e5, 0]  # the types are s f s s s f
    refused(nested(layer_rope_theta=thetas), "layer_types", "layer_rope_theta", "at layers 2:")
    refused(flat(no_rope_layers=[1, 1, 1, 1, 0, 0]), "no_rope_layers", "at layers 1, 4:")


def test_at_most_four_layers_are_named_and_the_others_counted():
    config = tiny_config(num_hidden_layers=12)
    refused(flat(config, no_rope_layers=[0] * 12), "at layers 0, 1, 2, 4 and 5 more")


@pytest.mark.parametrize("form", [nested, flattened])
def test_a_list_of_types_alone_has_to_fit_the_derived_rope(form):
    refused(form(layer_types=SIX, layer_rope_theta=GONE), "layer_types", "layers 3", "write both")


def test_a_rope_list_alone_has_to_fit_the_derived_types():
    refused(flat(layer_types=GONE, no_rope_layers=[1, 0] * 3), "no_rope_layers", "layers 3")


@FORMS
def test_lists_that_agree_are_kept_whatever_the_pattern(form):
    config = tiny_config(layer_types=tuple(SIX))
    assert read_config(form(config)).layer_types == tuple(SIX)


@FORMS
def test_null_lists_are_missing_lists(form):
    raw = form(layer_types=None, **{"no_rope_layers" if form is flat else "layer_rope_theta": None})
    assert read_config(raw) == tiny_config()


# ---- 5: entries


@pytest.mark.parametrize("entry", [2, -1, True, False, 0.5, "1", None])
def test_no_rope_entries_are_0_or_1(entry):
    refused(flat(no_rope_layers=[1, 0, 1, entry, 1, 0]), "no_rope_layers[3]", "1 (rope) or 0")


@pytest.mark.parametrize("entry", [10000.0, 1, True, False, "0", None, float("nan")])
def test_theta_entries_are_0_or_the_global_theta(entry):
    thetas = [5e5, 0, 5e5, entry, 5e5, 0]
    refused(nested(layer_rope_theta=thetas), "layer_rope_theta[3]", "500000.0")


def test_a_whole_number_theta_is_the_same_theta():
    raw = nested(layer_rope_theta=[500000, 0, 500000, 500000, 500000, 0])
    assert read_config(raw) == tiny_config()


# ---- 6: the period


@pytest.mark.parametrize("value", [0, -4, True, 4.0, "4"])
def test_the_period_is_above_0(value):
    refused(flat(every_n_layers_nope=value), "every_n_layers_nope")


def test_the_period_makes_missing_lists_from_the_last_layer_back():
    raw = flat(every_n_layers_nope=3, layer_types=GONE, no_rope_layers=GONE, num_hidden_layers=7)
    full = [i for i, k in enumerate(read_config(raw).layer_types) if k == "full_attention"]
    assert full == [0, 3, 6]


def test_a_period_among_hf_names_is_refused_unless_it_is_the_derived_one():
    assert read_config(nested(every_n_layers_nope=4)) == tiny_config()
    refused(nested(every_n_layers_nope=3), "every_n_layers_nope=3")


# ---- 7: the format of packaged artefacts


@pytest.mark.parametrize("value", [0, 2, "1", True, None])
def test_the_packaged_format_is_1(value):
    refused(flat(muse_glimmer_mlx_format=value), "muse_glimmer_mlx_format", "reads format 1")


def test_the_packaged_format_1_is_read():
    assert read_config(flat(muse_glimmer_mlx_format=1)) == tiny_config()


# ---- 8: vision


def test_the_vision_table_is_square():
    refused(seeing({"pos_emb_width": 5}), "pos_emb_height=4", "pos_emb_width=5")


def test_a_merged_patch_has_the_width_that_is_declared():
    refused(seeing(out_hidden_size=65), "out_hidden_size=65", "16", "= 64")


def test_the_released_tower_fits_its_defaults():
    assert read_config({**nested(), "vision_config": {}}).vision
    refused({**nested(), "vision_config": {"hidden_size": 1408}}, "out_hidden_size=6144", "5632")


@pytest.mark.parametrize("key", ["hidden_size", "merge_size", "pos_emb_height", "patch_size"])
@pytest.mark.parametrize("value", [0, True, "2", 2.0])
def test_sizes_of_the_tower_are_whole_numbers(key, value):
    refused(seeing({key: value}), "vision_config", key)


def test_a_tower_is_an_object():
    refused({**nested(), "vision_config": [1]}, "vision_config", "JSON object")


# ---- 10, 12: numbers


@FORMS
@pytest.mark.parametrize("value", [0, -1, None])
def test_the_window_is_at_least_1(form, value):
    refused(form(sliding_window=value), "sliding_window")


@FORMS
@pytest.mark.parametrize(
    "key",
    [
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window",
        "max_position_embeddings",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [True, 64.0, "64", 0, 2**31])
def test_sizes_are_whole_numbers_above_0_and_no_booleans(form, key, value):
    refused(form(**{key: value}), key)


@FORMS
@pytest.mark.parametrize(
    "key", ["rms_norm_eps", "post_norm_eps", "output_multiplier", "qk_scale_factor"]
)
@pytest.mark.parametrize("value", [True, "1", 0.0, -1.0, float("nan"), float("inf"), 10**400])
def test_other_numbers_are_finite_and_above_0_and_no_booleans(form, key, value):
    refused(form(**{key: value}), key)


@pytest.mark.parametrize(
    ("form", "key"), [(nested, "final_logit_softcapping"), (flat, "output_soft_cap_temp")]
)
def test_a_null_cap_is_no_cap_and_another_is_above_0(form, key):
    assert read_config(form(**{key: None})).final_logit_softcapping is None
    for value in (0, -20.0, False):
        refused(form(**{key: value}), key)


@FORMS
def test_the_message_names_the_key_where_it_stands_and_what_it_holds(form):
    place = "text_config:" if form is nested else "config.json:"
    refused(form(head_dim="wide"), place, "head_dim='wide'")


def test_a_value_is_shown_cut_short():
    with pytest.raises(ValueError, match="hidden_size") as caught:
        read_config(nested(hidden_size="x" * 10**6))
    assert len(str(caught.value)) < 300


# ---- 11: token ids


@pytest.mark.parametrize("value", [320, -1, True, 1.0, "1", [1, 320], [True]])
@pytest.mark.parametrize("key", ["bos_token_id", "eos_token_id", "pad_token_id"])
@FORMS
def test_token_ids_are_in_the_vocabulary(form, key, value):
    refused(form(**{key: value}), key, "vocab_size - 1 = 319")


@pytest.mark.parametrize("key", ["image_token_id", "video_token_id", "eos_token_id"])
def test_ids_beside_text_config_are_in_the_vocabulary_too(key):
    refused({**nested(), key: 320}, key, "319")


@FORMS
def test_several_ends_and_no_pad_are_fine(form):
    assert read_config(form(eos_token_id=[1, 319], pad_token_id=None)) == tiny_config()


# ---- what no engine computes


@FORMS
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use_qk_norm", False), ("use_attn_output_gate", False),
        ("normalize_tok_embeddings", False), ("attention_bias", True), ("mlp_bias", True),
        ("use_sliding_window", False), ("num_experts", 8), ("attn_logit_softcapping", 50.0),
        ("attention_multiplier", 0.5), ("use_bidirectional_attention", True),
    ],
)  # fmt: skip
def test_another_computation_is_refused_by_its_key(form, key, value):
    refused(form(**{key: value}), key, "another computation")


def test_another_computation_is_refused_beside_text_config_too():
    refused({**nested(), "use_qk_norm": False}, "use_qk_norm", "another computation")


@pytest.mark.parametrize(
    ("key", "value"), [("use_qk_norm", 1), ("attention_bias", 0), ("num_experts", False)]
)
def test_a_switch_is_a_boolean_and_a_count_is_none(key, value):
    refused(flat(**{key: value}), key)


@FORMS
def test_the_neutral_values_of_such_keys_are_read(form):
    raw = form(attention_bias=False, num_experts=0, attn_logit_softcapping=None, use_qk_norm=True)
    assert read_config(raw) == tiny_config()
