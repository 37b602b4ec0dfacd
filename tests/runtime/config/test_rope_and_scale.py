"""The theta of rope and the factor on q: numbers that, read wrongly, give fluent nonsense."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import ConfigError
from atem.runtime.schemas import read_config
from atem.runtime.schemas.scale import hf_factor
from atem.testing.tiny import tiny_config
from tests.runtime.config.samples import GONE, flat, flattened, nested, refused

HF = pytest.mark.parametrize("form", [nested, flattened])
FORMS = pytest.mark.parametrize("form", [nested, flattened, flat])
HEAD_DIMS = st.integers(1, 256).map(lambda half: 2 * half)


def rope(**changes):
    return {"rope_type": "default", "rope_theta": 500000.0, **changes}


# ---- theta


@HF
def test_no_theta_is_refused_since_readers_fill_in_different_ones(form):
    for raw in (form(rope_parameters=GONE), form(rope_parameters=None), form(rope_parameters={})):
        refused(raw, "rope_parameters is missing", "10000", "500000")


@HF
def test_a_bare_theta_stands_for_rope_parameters(form):
    assert read_config(form(rope_parameters=GONE, rope_theta=500000)) == tiny_config()


@FORMS
def test_two_thetas_have_to_agree(form):
    raw = form(rope_parameters=rope(), rope_theta=10000.0)
    if form is flat:
        refused(raw, "rope_parameters.rope_theta=500000.0", "rope_theta=10000.0", "one theta")
    else:
        refused(raw, "rope_theta=10000.0", "one theta")


@pytest.mark.parametrize(
    "theta", [True, "500000", 0, -1.0, float("nan"), float("inf"), [5e5], 10**400]
)
def test_theta_is_a_positive_number(theta):
    refused(nested(rope_parameters=rope(rope_theta=theta)), "rope_theta", "positive number")


@pytest.mark.parametrize("value", [[], "default", 5e5])
def test_rope_parameters_is_an_object(value):
    refused(nested(rope_parameters=value), "text_config.rope_parameters", "JSON object")


# ---- 9: nothing scales it


@FORMS
@pytest.mark.parametrize("key", ["rope_type", "type"])
@pytest.mark.parametrize("kind", ["yarn", "linear", "dynamic", "llama3", "axial", 1])
def test_scaled_rope_is_refused_with_its_type(form, key, kind):
    refused(
        form(rope_parameters=rope(**{key: kind}, factor=4.0)), f"rope_parameters.{key}", repr(kind)
    )


@FORMS
def test_the_older_key_for_scaled_rope_is_looked_at_too(form):
    refused(form(rope_scaling={"type": "yarn", "factor": 4.0}), "rope_scaling.type", "'yarn'")
    assert read_config(form(rope_scaling=None)) == tiny_config()


def test_scaled_rope_beside_text_config_is_refused():
    refused({**nested(), "rope_scaling": {"rope_type": "yarn"}}, "rope_scaling.rope_type")


@FORMS
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("factor", 4.0),
        ("partial_rotary_factor", 0.5),
        ("attention_factor", 1.2),
        ("mrope_section", [1]),
    ],
)
def test_what_changes_angles_is_refused_under_the_default_type_too(form, key, value):
    refused(form(rope_parameters=rope(**{key: value})), f"rope_parameters.{key}")


def test_a_partial_rope_is_refused_at_the_top_level():
    refused(flat(partial_rotary_factor=0.5), "partial_rotary_factor=0.5")


def test_neutral_values_of_rope_are_read():
    raw = nested(rope_parameters=rope(factor=1.0, partial_rotary_factor=1, attention_factor=None))
    assert read_config(raw) == tiny_config()


def test_a_rope_for_each_kind_of_layer_is_refused():
    kinds = {"full_attention": rope(), "sliding_attention": rope()}
    refused(nested(rope_parameters=kinds), "rope_parameters.full_attention")


# ---- the factor on q


@given(head_dim=HEAD_DIMS)
def test_the_released_factor_is_right_at_any_head_size(head_dim):
    assert hf_factor(3.87, head_dim, "hf", "") == 3.87
    assert hf_factor(3.87 * math.sqrt(head_dim), head_dim, "flat", "") == 3.87


@given(head_dim=st.integers(8, 256).map(lambda half: 2 * half))
def test_the_released_factor_of_the_other_schema_is_refused_at_any_head_size(head_dim):
    with pytest.raises(ConfigError, match="read as hf names"):
        hf_factor(3.87 * math.sqrt(head_dim), head_dim, "hf", "")
    with pytest.raises(ConfigError, match="read as flat names"):
        hf_factor(3.87, head_dim, "flat", "")


@given(head_dim=HEAD_DIMS, factor=st.floats(20, 1e6, exclude_min=True))
def test_above_20_is_no_factor_under_hf_names(head_dim, factor):
    with pytest.raises(ConfigError, match="qk_scale_factor"):
        hf_factor(factor, head_dim, "hf", "")


@given(
    head_dim=st.integers(4, 256).map(lambda half: 2 * half),
    factor=st.floats(1e-6, 10, exclude_max=True),
)
def test_below_10_is_no_factor_under_flat_names(head_dim, factor):
    with pytest.raises(ConfigError, match="qk_scale_factor"):
        hf_factor(factor, head_dim, "flat", "")


@pytest.mark.parametrize(
    ("factor", "head_dim", "names"),
    [(20.5, 1024, "hf"), (19.0, 512, "hf"), (12.0, 512, "flat"), (9.9, 8, "flat")],
)
def test_another_factor_has_to_lie_on_the_side_of_its_own_schema(factor, head_dim, names):
    with pytest.raises(ConfigError, match="qk_scale_factor"):
        hf_factor(factor, head_dim, names, "")


def test_another_factor_on_its_own_side_is_read():
    assert hf_factor(18.0, 512, "hf", "") == 18.0
    assert hf_factor(2.5, 16, "hf", "") == 2.5
    assert hf_factor(12.0, 16, "flat", "") == 3.0


@pytest.mark.parametrize("times", [0.4, 2.5])
def test_at_the_released_head_size_the_softmax_is_near_the_released_one(times):
    for names, root in (("hf", 1.0), ("flat", math.sqrt(128))):
        with pytest.raises(ConfigError, match=r"released: 0\.342"):
            hf_factor(3.87 * times * root, 128, names, "")
        assert hf_factor(3.87 * 1.5 * root, 128, names, "") == pytest.approx(5.805)


def test_the_factor_and_its_place_are_in_the_message():
    refused(nested(qk_scale_factor=15.48), "text_config.qk_scale_factor=15.48", "head_dim=16")
    refused(flat(qk_scale_factor=3.87), "qk_scale_factor=3.87", "15.48")


def test_the_published_flat_factor_is_the_hf_factor():
    raw = {"no_rope_layers": None, "qk_scale_factor": 43.7840518911}
    assert read_config(raw).qk_scale_factor == 3.87


def test_a_missing_flat_factor_is_refused_at_another_head_size():
    refused(flat(qk_scale_factor=GONE), "qk_scale_factor is missing", "16")
    assert (
        read_config(flat(tiny_config(head_dim=128), qk_scale_factor=GONE)).qk_scale_factor == 3.87
    )
