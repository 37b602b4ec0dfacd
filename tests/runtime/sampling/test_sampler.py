"""Choosing a token: the greedy one, a drawn one, what it reports, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from atem.engine import GREEDY, Sampling
from atem.errors import ConfigError, EngineError
from atem.runtime.sampling import Candidates, Sampler, candidates, default_sampling, kept_weights

if TYPE_CHECKING:
    from random import Random

V = 120

rows = arrays.arrays(
    np.float32,
    V,
    elements=st.floats(-30, 30, width=32) | st.sampled_from((1.0, 2.0, float("-inf"))),
).filter(lambda row: np.isfinite(row).any())
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from((0.0, 0.3, 1.0, 2.0)),
    top_k=st.sampled_from((0, 1, 5, 64, 1000)),
    top_p=st.sampled_from((0.5, 0.95, 1.0)),
    min_p=st.sampled_from((0.0, 0.1)),
    repetition_penalty=st.sampled_from((1.0, 1.3)),
    seed=st.integers(0, 2**63),
    logprobs=st.sampled_from((None, 0, 3, 20)),
)


def picks(sampling: Sampling, row: np.ndarray, count: int = 5) -> list[object]:
    sampler = Sampler(sampling, [1, 2], len(row))
    return [sampler.pick(candidates(row, sampler.need)) for _ in range(count)]


@given(row=rows)
def test_greedy_takes_the_lowest_id_of_the_likeliest(row: np.ndarray) -> None:
    assert picks(GREEDY, row, 1)[0].id == int(np.argmax(row))


@given(row=rows, sampling=samplings)
def test_the_needed_candidates_give_the_tokens_that_the_whole_row_gives(
    row: np.ndarray, sampling: Sampling
) -> None:
    whole = Sampler(sampling, [1, 2], V)
    all_of_it = [whole.pick(candidates(row, None)) for _ in range(5)]
    assert picks(sampling, row) == all_of_it


@given(row=rows, sampling=samplings, random=st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_nothing(
    row: np.ndarray, sampling: Sampling, random: Random
) -> None:
    one, other = Sampler(sampling, [1], V), Sampler(sampling, [1], V)
    assume(one.need is not None)
    straight = candidates(row, one.need)
    order = random.sample(range(len(straight.ids)), len(straight.ids))
    mixed = Candidates(straight.ids[order], straight.logits[order], straight.log_total)
    assert [one.pick(straight) for _ in range(3)] == [other.pick(mixed) for _ in range(3)]


@given(row=rows, sampling=samplings)
def test_what_has_no_probability_is_never_picked(row: np.ndarray, sampling: Sampling) -> None:
    assert all(np.isfinite(row[picked.id]) for picked in picks(sampling, row))


@given(row=rows, sampling=samplings)
def test_log_probabilities_are_those_of_the_model_whatever_the_filters(
    row: np.ndarray, sampling: Sampling
) -> None:
    wanted = torch.from_numpy(row.astype(np.float64)).log_softmax(-1).numpy()
    for picked in picks(sampling, row):
        if sampling.logprobs is None:
            assert picked.logprob is None
        else:
            assert picked.logprob == pytest.approx(wanted[picked.id], abs=1e-9)


@given(row=rows, count=st.integers(1, 20))
def test_the_top_are_the_likeliest_ids_best_first(row: np.ndarray, count: int) -> None:
    top = picks(Sampling(logprobs=count, seed=0), row, 1)[0].top
    order = np.lexsort((np.arange(V), -row))[:count]
    logprobs = torch.from_numpy(row.astype(np.float64)).log_softmax(-1).numpy()
    assert [number for number, _ in top] == order.tolist()
    assert [value for _, value in top] == pytest.approx(logprobs[order].tolist(), abs=1e-9)


def test_no_top_is_listed_where_none_is_asked_for() -> None:
    picked = picks(Sampling(logprobs=0), np.zeros(V, np.float32), 1)[0]
    assert (picked.top, picked.logprob) == (None, pytest.approx(-np.log(V)))


@given(row=rows, sampling=samplings)
def test_a_seed_gives_the_same_tokens_again(row: np.ndarray, sampling: Sampling) -> None:
    assert picks(sampling, row) == picks(sampling, row)


def test_without_a_seed_the_tokens_differ() -> None:
    free = Sampling(top_k=0, top_p=1.0)
    assert len({tuple(picks(free, np.zeros(V, np.float32), 30)) for _ in range(4)}) == 4


def test_one_random_number_is_used_for_each_token_whatever_it_is_drawn_from() -> None:
    sampling = Sampling(top_k=0, top_p=1.0, seed=11)
    flat, steep = np.zeros(V, np.float32), np.full(V, -50, np.float32)
    steep[7] = 50
    mixed = Sampler(sampling, [0], V)
    drawn = [mixed.pick(candidates(row, None)).id for row in (flat, steep, flat)]
    assert drawn[2] == [picked.id for picked in picks(sampling, flat, 3)][2]


def test_tokens_come_as_often_as_they_are_likely() -> None:
    sampling = Sampling(temperature=1.5, top_k=12, top_p=0.9, seed=5)
    row = (3 * np.random.default_rng(0).standard_normal(V)).astype(np.float32)
    kept, weights = kept_weights(sampling, np.arange(V), row.astype(np.float64))
    expected = np.zeros(V)
    draws = 20_000
    expected[kept] = draws * weights / weights.sum()
    sampler = Sampler(sampling, [0], V)
    given_row = candidates(row, sampler.need)
    counts = np.bincount([sampler.pick(given_row).id for _ in range(draws)], minlength=V)
    assert not counts[expected == 0].any()
    chi_square = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    freedom = len(kept) - 1
    assert freedom > 4
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), Sampling(top_k=0)])
def test_logits_that_are_broken_anywhere_raise(bad: float, sampling: Sampling) -> None:
    row = np.linspace(0, 1, V, dtype=np.float32)
    row[3] = bad
    with pytest.raises(EngineError, match="check the checkpoint"):
        picks(sampling, row, 1)


def test_a_row_without_any_possible_token_raises() -> None:
    with pytest.raises(EngineError):
        picks(GREEDY, np.full(V, float("-inf"), np.float32), 1)


@pytest.mark.parametrize("huge", [1e6, 3e38])
def test_huge_logits_are_no_trouble(huge: float) -> None:
    row = np.full(V, -huge, np.float32)
    row[[4, 9]] = huge
    assert {token.id for token in picks(Sampling(seed=0, top_k=0), row, 40)} == {4, 9}


def test_a_log_probability_is_exact_far_from_zero() -> None:
    row = np.full(V, -1e6, np.float32)
    row[[4, 9]] = 1e6
    assert picks(Sampling(seed=0, logprobs=0), row, 1)[0].logprob == pytest.approx(-np.log(2))


@pytest.mark.parametrize(
    ("sampling", "need"),
    [
        (GREEDY, 1),
        (Sampling(temperature=0, logprobs=5), 5),
        (Sampling(top_k=7), 7),
        (Sampling(top_k=7, logprobs=9), 9),
        (Sampling(top_k=0), None),
        (Sampling(top_k=V), None),
        (Sampling(temperature=0, presence_penalty=0.1), None),
        (Sampling(top_k=4, repetition_penalty=1.1), None),
    ],
)
def test_a_sampler_asks_for_no_more_than_it_looks_at(sampling: Sampling, need: int | None) -> None:
    assert Sampler(sampling, [0], V).need == need


def test_a_forced_token_has_its_true_log_probability_and_counts_as_output() -> None:
    row = np.array([2.0, 1.9, 0.0], np.float32)
    sampler = Sampler(Sampling(temperature=0, logprobs=1, presence_penalty=0.5), [2], 3)
    forced = sampler.force(candidates(row, None), 0)
    assert forced.logprob == pytest.approx(torch.tensor(row).log_softmax(-1)[0].item(), abs=1e-6)
    assert forced.top == ((0, pytest.approx(forced.logprob)),)
    assert sampler.pick(candidates(row, None)).id == 1


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, Sampling(temperature=1.0, top_p=0.95, top_k=64)),
        ({"temperature": 0.6, "top_k": None}, Sampling(temperature=0.6)),
        ({"top_k": 20, "min_p": 0.05, "max_length": 20}, Sampling(top_k=20, min_p=0.05)),
        ({"do_sample": False, "temperature": 0.7}, Sampling(temperature=0.0)),
        ({"do_sample": True, "repetition_penalty": 1.1}, Sampling(repetition_penalty=1.1)),
    ],
)
def test_defaults_are_the_checkpoint_s_and_else_the_model_card_s(
    config: dict[str, object], wanted: Sampling
) -> None:
    assert default_sampling(config) == wanted


@pytest.mark.parametrize("bad", [{"top_p": 0}, {"temperature": "hot"}, {"top_k": 1.5}])
def test_a_default_that_can_not_work_names_its_file(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"generation_config\.json"):
        default_sampling(bad)
