"""What the filters keep and with which probabilities: transformers' own processors say so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from atem.engine import Sampling
from atem.runtime.sampling import Sampler, candidates, kept_weights

V = 200

samplings = st.builds(
    Sampling,
    temperature=st.floats(0.05, 5),
    top_k=st.sampled_from((0, 1, 7, 64, 500)),
    top_p=st.floats(0.01, 1),
    min_p=st.sampled_from((0.0, 0.02, 0.5, 1.0)),
)


def row(seed: int, scale: float = 4.0) -> np.ndarray:
    return (scale * np.random.default_rng(seed).standard_normal(V)).astype(np.float32)


def library(sampling: Sampling, logits: np.ndarray, seen: list[int]) -> np.ndarray:
    """Probabilities [V] after transformers' processors, in the order that ``Sampling`` names."""
    chain = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)])
    if sampling.top_k:
        chain.append(TopKLogitsWarper(sampling.top_k))
    chain.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_p < 1:
        chain.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p:
        chain.append(MinPLogitsWarper(sampling.min_p))
    scores = chain(torch.tensor([seen]), torch.from_numpy(logits.astype(np.float64))[None])
    return scores.softmax(-1)[0].numpy()


def ours(sampling: Sampling, logits: np.ndarray) -> np.ndarray:
    kept, weights = kept_weights(sampling, np.arange(V), logits.astype(np.float64))
    probabilities = np.zeros(V)
    probabilities[kept] = weights / weights.sum()
    return probabilities


@given(sampling=samplings, seed=st.integers(0, 10_000))
def test_the_filters_keep_what_transformers_keeps_as_likely_as_there(
    sampling: Sampling, seed: int
) -> None:
    logits = row(seed)
    np.testing.assert_allclose(
        ours(sampling, logits), library(sampling, logits, [0]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("few", [1, 5])
def test_where_the_likeliest_few_are_not_enough_all_are_looked_at(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atem.runtime.sampling._FEW", few)
    sampling = Sampling(top_k=0, top_p=0.9)
    assert np.count_nonzero(ours(sampling, row(1, 1.0))) > 5
    np.testing.assert_allclose(
        ours(sampling, row(1, 1.0)), library(sampling, row(1, 1.0), [0]), rtol=1e-9
    )


@given(
    penalty=st.floats(0.1, 10),
    seen=st.lists(st.integers(0, V - 1), min_size=1, max_size=80),
    split=st.integers(0, 80),
    seed=st.integers(0, 99),
)
def test_the_repetition_penalty_is_transformers_own_over_prompt_and_output(
    penalty: float, seen: list[int], split: int, seed: int
) -> None:
    sampling = Sampling(temperature=0, repetition_penalty=penalty)
    sampler = Sampler(sampling, seen[:split], V)
    logits = row(seed)
    for token in seen[split:]:
        sampler.force(candidates(logits, None), token)
    wanted = library(Sampling(top_k=0, top_p=1.0, repetition_penalty=penalty), logits, seen)
    picked = sampler.pick(candidates(logits, sampler.need)).id
    assert wanted[picked] == pytest.approx(wanted.max(), rel=1e-9)


def test_presence_is_subtracted_once_and_frequency_each_time_and_the_prompt_does_not_count() -> (
    None
):
    sampling = Sampling(temperature=0, presence_penalty=1.0, frequency_penalty=0.5)
    logits = np.array([3.0, 2.1, 1.1], np.float32)
    sampler = Sampler(sampling, [0, 0, 0], 3)
    picked = [sampler.pick(candidates(logits, sampler.need)).id for _ in range(5)]
    # 3.0 -> 1.5 -> 1.0 -> 0.5; 2.1 -> 0.6; 1.1 -> -0.4
    assert picked == [0, 1, 0, 2, 0]


@given(cutoff=st.floats(0.01, 0.99), seed=st.integers(0, 999))
def test_top_p_keeps_the_fewest_that_reach_it(cutoff: float, seed: int) -> None:
    sampling = Sampling(top_k=0, top_p=cutoff)
    probabilities = np.sort(ours(Sampling(top_k=0, top_p=1.0), row(seed)))[::-1]
    kept = np.count_nonzero(ours(sampling, row(seed)))
    assert probabilities[:kept].sum() >= cutoff - 1e-12
    assert probabilities[: kept - 1].sum() < cutoff


def test_top_k_keeps_exactly_as_many_the_lower_ids_of_equals() -> None:
    kept, _ = kept_weights(Sampling(top_k=3, top_p=1.0), np.arange(9), np.zeros(9))
    assert sorted(kept) == [0, 1, 2]


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-9])
def test_a_temperature_near_zero_is_greedy_and_warns_of_nothing(temperature: float) -> None:
    sampling = Sampling(temperature=temperature, top_k=0, top_p=1.0, seed=1)
    sampler = Sampler(sampling, [0], V)
    logits = row(3)
    assert sampler.pick(candidates(logits, sampler.need)).id == int(logits.argmax())
