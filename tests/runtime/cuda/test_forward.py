"""The logits are transformers': in one pass, in pieces, token by token, far beyond the window."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.testing.tiny import MemoryCheckpoint, tiny_config, tiny_weights
from tests.runtime.cuda.models import in_pieces, one_by_one, some_ids, tiny_runner
from tests.runtime.oracle import oracle, oracle_logits

CONFIGS = {
    "6 layers": {},
    "7 layers": {"num_hidden_layers": 7},
    "tied": {"tie_word_embeddings": True},
    "no cap": {"final_logit_softcapping": None},
    "one key head": {"num_key_value_heads": 1, "num_hidden_layers": 4},
    "a head each": {"num_key_value_heads": 4, "num_hidden_layers": 5},
    "other numbers": {
        "rms_norm_eps": 1e-3, "post_norm_eps": 1e-2, "rope_theta": 10.0, "qk_scale_factor": 2.5,
        "output_multiplier": 0.5, "sliding_window": 1,
    },
}  # fmt: skip
NEAR = {"rtol": 0, "atol": 2e-5}
IDS = some_ids(100)


@pytest.fixture(scope="module", params=CONFIGS)
def pair(request):
    """A checkpoint, and transformers' logits [100, V] of IDS."""
    config = tiny_config(**CONFIGS[request.param])
    weights = tiny_weights(config)
    return MemoryCheckpoint(config, weights), oracle_logits(oracle(config, weights), IDS)


def test_one_pass_gives_transformers_logits(pair):
    checkpoint, expected = pair
    runner = tiny_runner(checkpoint, slack=len(IDS))
    np.testing.assert_allclose(in_pieces(runner, IDS, [len(IDS)]), expected, **NEAR)


@pytest.mark.parametrize("static", [False, True])
def test_token_by_token_gives_transformers_logits(pair, static):
    checkpoint, expected = pair
    runner = tiny_runner(checkpoint, static=static)
    np.testing.assert_allclose(one_by_one(runner, IDS), expected, **NEAR)


SIX = MemoryCheckpoint()
EXPECTED = oracle_logits(oracle(SIX.config, tiny_weights(SIX.config)), IDS)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 17), min_size=12, max_size=12), st.integers(0, 3))
def test_any_pieces_give_the_same_logits_in_any_slot(sizes, slot):
    ends = np.minimum(np.cumsum(sizes), len(IDS))
    sizes = [size for size in np.diff(ends, prepend=0).tolist() if size]
    ids = IDS[: sum(sizes)]
    found = in_pieces(tiny_runner(SIX, slack=17, slots=4), ids, sizes, slot)
    np.testing.assert_allclose(found, EXPECTED[: len(ids)], **NEAR)


def test_pieces_and_single_tokens_may_take_turns():
    runner = tiny_runner(SIX, slack=16)
    runner.fill(0, 0, IDS[:16])
    for start in range(16, 80, 12):
        for place in range(start, start + 4):
            found = runner.decode([(IDS[place], place)])
            np.testing.assert_allclose(found[0].numpy(), EXPECTED[place], **NEAR)
        found = runner.fill(0, start + 4, IDS[start + 4 : start + 12], 8)
        np.testing.assert_allclose(found.numpy(), EXPECTED[start + 4 : start + 12], **NEAR)


def test_only_the_asked_rows_go_through_the_head():
    assert tiny_runner(SIX).fill(0, 0, IDS[:9]).shape == (1, SIX.config.vocab_size)
    assert tiny_runner(SIX).fill(0, 0, IDS[:9], 0).shape == (0, SIX.config.vocab_size)


def error(found, exact):
    """Largest and mean distance."""
    distance = np.abs(found - exact)
    return np.array([distance.max(), distance.mean()])


@pytest.mark.parametrize("layers", [6, 7])
def test_bfloat16_is_no_further_from_float32_than_transformers_is(layers):
    config = tiny_config(num_hidden_layers=layers)
    errors = []
    for seed in range(4):
        stored = {k: v.astype(ml_dtypes.bfloat16) for k, v in tiny_weights(config, seed).items()}
        exact_weights = {name: values.astype(np.float32) for name, values in stored.items()}
        exact = oracle_logits(oracle(config, exact_weights), IDS)
        theirs = oracle_logits(oracle(config, exact_weights, torch.bfloat16), IDS)
        runner = tiny_runner(MemoryCheckpoint(config, stored), dtype=torch.bfloat16, slack=100)
        passes = in_pieces(runner, IDS, [100]), one_by_one(runner, IDS)
        errors.append([error(found, exact) for found in (*passes, theirs)])
    whole, single, theirs = np.mean(errors, axis=0)
    assert (whole <= 1.3 * theirs).all()
    assert (single <= 1.3 * theirs).all()
