"""The canonical configuration keeps its own invariants, whoever makes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from transformers import MuseGlimmerTextConfig

from atem.runtime.config import layer_pattern
from atem.testing.tiny import tiny_config


@given(layers=st.integers(1, 130))
def test_the_pattern_is_transformers_default_for_every_number_of_layers(layers):
    theirs = MuseGlimmerTextConfig(num_hidden_layers=layers)
    assert list(layer_pattern(layers)) == theirs.layer_types


def test_the_released_pattern_is_thirteen_full_layers_from_the_fourth_on():
    full = [i for i, kind in enumerate(layer_pattern(52)) if kind == "full_attention"]
    assert full == list(range(3, 52, 4))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"num_key_value_heads": 3},
            "num_attention_heads=4 is no multiple of num_key_value_heads=3",
        ),
        ({"head_dim": 15}, "head_dim=15 is odd"),
        ({"layer_types": layer_pattern(5)}, "layer_types has 5 entries for num_hidden_layers=6"),
        ({"hidden_size": True}, "valid integer"),
        ({"hidden_size": 2**31}, "less than"),
        ({"rope_theta": float("inf")}, "finite"),
        ({"sliding_window": 0}, "greater than or equal to 1"),
        ({"surprise": 1}, "not permitted"),
    ],
)
def test_a_configuration_that_cannot_be_is_not_made(changes, words):
    with pytest.raises(ValidationError, match=words):
        tiny_config(**changes)


def test_the_number_of_layers_is_bounded_before_anything_is_made_of_it():
    with pytest.raises(ValidationError, match="num_hidden_layers"):
        tiny_config(num_hidden_layers=1025, layer_types=())
