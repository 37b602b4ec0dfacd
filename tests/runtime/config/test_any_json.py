"""Whatever the JSON holds, a reader gives a ModelConfig or a ConfigError and nothing else."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import ConfigError
from atem.runtime.config import ModelConfig
from atem.runtime.schemas import config_from_gguf, read_config, rope_style_of
from tests.runtime.config.samples import flat, flattened, gguf, nested, seeing

KEYS = sorted(
    {"rope_scaling", "architectures", "partial_rotary_factor", "every_n_layers_nope", "use_qk_norm"}
    | seeing().keys() | nested()["text_config"].keys() | flat().keys()
    | {"muse_glimmer_mlx_format", "rope_type", "type", "factor", "pos_emb_width", "merge_size"}
)  # fmt: skip
GGUF_KEYS = sorted(
    {
        *gguf(),
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.eos_token_id",
        "muse-glimmer.rope.scaling.type",
    }
)
HUGE = [10**400, -(10**400), 2**63, 1e308, 5e-324, float("nan"), float("inf")]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
scalars |= st.sampled_from(
    ["muse_glimmer", "muse-glimmer", "silu", "default", "sliding_attention", *HUGE]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=7)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)


def check(raw):
    for read, kinds in ((read_config, ModelConfig), (rope_style_of, str | None)):
        with suppress(ConfigError):
            assert isinstance(read(raw), kinds)


@given(raw=values | objects)
def test_any_json_value(raw):
    check(raw)


@pytest.mark.parametrize("form", [nested, flattened, flat, seeing])
@given(data=st.data())
def test_a_valid_configuration_with_one_key_replaced(form, data):
    raw = form()
    part = data.draw(
        st.sampled_from([raw, raw.get("text_config", raw), raw.get("vision_config", raw)])
    )
    part[data.draw(st.sampled_from(KEYS))] = data.draw(values)
    check(raw)


@given(key=st.sampled_from(GGUF_KEYS), value=values, scale=scalars)
def test_valid_metadata_with_one_key_replaced(key, value, scale):
    with suppress(ConfigError):
        assert isinstance(config_from_gguf({**gguf(), key: value}, 3.87), ModelConfig)
    with suppress(ConfigError):
        assert isinstance(config_from_gguf(gguf(), scale), ModelConfig)


@given(metadata=st.dictionaries(st.sampled_from(GGUF_KEYS), values) | values)
def test_any_metadata(metadata):
    with suppress(ConfigError):
        assert isinstance(config_from_gguf(metadata, None), ModelConfig)


def test_nesting_as_deep_as_json_goes_is_refused_shortly():
    deep = json.loads("[" * 900 + "]" * 900)
    with pytest.raises(ConfigError, match="hidden_size") as caught:
        read_config(nested(hidden_size=deep))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "key", ["hidden_size", "rope_theta", "bos_token_id", "model_type", "layer_types"]
)
def test_a_number_too_long_to_write_is_refused_without_being_written(key):
    with pytest.raises(ConfigError, match=key):
        read_config(flattened(**{key: 10**5000}))


@given(raw=objects)
def test_what_is_read_is_left_as_it_was(raw):
    before = repr(raw)
    check(raw)
    assert repr(raw) == before
