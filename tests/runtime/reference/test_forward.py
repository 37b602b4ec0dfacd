"""The forward pass against transformers, in every way of cutting it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from atem.runtime.reference import Model
from tests.runtime.oracle import oracle, oracle_logits
from tests.runtime.reference.models import CONFIGS, in_pieces, some_ids, tiny

LENGTH, CLOSE = 48, 2e-5


@pytest.fixture(scope="module", params=CONFIGS)
def case(request):
    """A model, ids beyond its window, and transformers' logits of them."""
    config, weights = tiny(request.param)
    ids = some_ids(LENGTH)
    return Model(config, weights.__getitem__), ids, oracle_logits(oracle(config, weights), ids)


@pytest.mark.parametrize(
    "sizes",
    [[LENGTH], [1] * LENGTH, [11, 6, 7, 11, 6, 7], [40, *[1] * 8], [3, 45], [1, 47]],
    ids=["one pass", "token by token", "11, 6, 7", "prefill and decode", "3, 45", "1, 47"],
)
def test_logits_are_those_of_transformers(case, sizes):
    model, ids, expected = case
    assert np.abs(expected).max() > 0.3  # a test of numbers, not of zeros
    assert np.abs(in_pieces(model, ids, sizes) - expected).max() <= CLOSE


def test_everything_stays_float32(case):
    model, ids, _ = case
    caches = model.caches(LENGTH)
    hidden = model.hidden(ids, caches)
    assert hidden.dtype == model.logits(hidden).dtype == caches[0].all()[0].dtype == np.float32


def test_the_cap_is_reached_as_in_transformers():
    config, weights = tiny("6 layers")
    weights = weights | {"head": weights["head"] * 400}
    ids = some_ids(20)
    expected = oracle_logits(oracle(config, weights), ids)
    assert np.abs(expected).max() > 19
    logits = in_pieces(Model(config, weights.__getitem__), ids, [20])
    assert np.abs(logits - expected).max() <= 400 * CLOSE


@pytest.mark.parametrize("stored", [np.float16, ml_dtypes.bfloat16])
def test_weights_are_widened_where_they_are_used(stored):
    config, weights = tiny("6 layers")
    narrow = {name: values.astype(stored) for name, values in weights.items()}
    wide = {name: values.astype(np.float32) for name, values in narrow.items()}
    ids = some_ids(20)
    logits = in_pieces(Model(config, narrow.__getitem__), ids, [20])
    assert np.array_equal(logits, in_pieces(Model(config, wide.__getitem__), ids, [20]))


def test_loss_is_the_cross_entropy_of_transformers():
    config, weights = tiny("6 layers")
    ids = some_ids(LENGTH)
    logits = torch.from_numpy(oracle_logits(oracle(config, weights), ids))
    expected = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]))
    loss = Model(config, weights.__getitem__).loss(ids)
    assert loss == pytest.approx(float(expected), abs=CLOSE)


def test_q_and_k_in_the_order_of_another_layout_give_other_logits():
    config, weights = tiny("6 layers")

    def pairs(rows):
        heads = rows.reshape(-1, 2, config.head_dim // 2, rows.shape[1])
        return heads.transpose(0, 2, 1, 3).reshape(rows.shape)

    ids = some_ids(LENGTH)
    wrong = {n: pairs(v) if n.endswith((".q", ".k")) else v for n, v in weights.items()}
    right = in_pieces(Model(config, weights.__getitem__), ids, [LENGTH])
    assert np.abs(in_pieces(Model(config, wrong.__getitem__), ids, [LENGTH]) - right).max() > 0.05


def test_a_lazy_read_is_asked_for_one_tensor_at_a_time_in_the_order_of_the_model():
    config, weights = tiny("6 layers")
    asked = []

    def read(name):
        asked.append(name)
        return weights[name].copy()

    Model(config, read).loss(some_ids(10))
    layers = [int(name.split(".")[1]) for name in asked if name.startswith("layers.")]
    assert layers == sorted(layers)
    assert set(asked) == set(weights)
    assert len(asked) == len(weights)
