"""Choosing among the tokens that are allowed: as if the others had no probability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.engine import GREEDY, Sampling
from atem.errors import EngineError
from atem.runtime.sampling import Sampler, candidates
from tests.runtime.sampling.test_sampler import V, rows, samplings

masks = st.lists(st.integers(0, V - 1), min_size=1, max_size=30).map(
    lambda ids: np.isin(np.arange(V), ids)
)


def picks(sampling, row, allowed, seen=(1, 2)):
    sampler = Sampler(replace(sampling, logprobs=None), seen, V)
    return [sampler.pick(candidates(row, None), allowed).id for _ in range(5)]


@given(row=rows, sampling=samplings, allowed=masks)
def test_a_token_is_picked_as_from_logits_that_forbid_the_others(row, sampling, allowed):
    row = np.where(np.isfinite(row), row, np.float32(-40))
    forbidden = np.where(allowed, row, np.float32(-1e30))
    assert picks(sampling, row, allowed) == picks(sampling, forbidden, None)


@given(row=rows, sampling=samplings)
def test_where_all_is_allowed_nothing_changes(row, sampling):
    everything = np.ones(V, dtype=np.bool_)
    assert picks(sampling, row, everything) == picks(sampling, row, None)


@given(row=rows, sampling=samplings, allowed=masks)
def test_log_probabilities_and_the_likeliest_are_of_the_whole_distribution(row, sampling, allowed):
    row = np.where(np.isfinite(row), row, np.float32(-40))
    sampler = Sampler(replace(sampling, logprobs=3), [1, 2], V)
    picked = sampler.pick(candidates(row, None), allowed)
    expected = row.astype(np.float64) - np.logaddexp.reduce(row.astype(np.float64))
    assert allowed[picked.id]
    assert picked.logprob == pytest.approx(expected[picked.id], abs=1e-4)
    assert [value for _, value in picked.top] == pytest.approx(sorted(expected)[:-4:-1], abs=1e-4)


@given(row=rows, few=st.integers(0, 3))
def test_the_best_and_as_many_as_are_forbidden_are_enough(row, few):
    row = np.where(np.isfinite(row), row, np.float32(-40))
    allowed = ~np.isin(np.arange(V), np.argsort(row)[V - few :] if few else [])
    for sampling in (GREEDY, Sampling(top_k=5, seed=3)):
        need = Sampler(sampling, [], V).need
        whole, part = (
            Sampler(sampling, [], V).pick(candidates(row, count), allowed)
            for count in (None, need + few)
        )
        assert whole == part


@pytest.mark.parametrize("values", [[], [float("-inf")]])
def test_where_nothing_that_is_allowed_can_be_picked_it_is_an_error(values):
    row = np.zeros(V, np.float32)
    row[: len(values)] = values
    with pytest.raises(EngineError, match="no token that is allowed"):
        Sampler(GREEDY, [], V).pick(candidates(row, None), np.arange(V) < len(values))
