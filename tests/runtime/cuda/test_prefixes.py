"""What is remembered of a prompt changes its speed and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.testing.driving import ids_of, in_turns, run
from tests.runtime.cuda.models import ask, some_ids, tiny_engine

trunks = st.lists(st.sampled_from([1, 2]), min_size=1, max_size=40)


@settings(max_examples=20)
@given(
    st.lists(trunks, min_size=2, max_size=6),
    st.integers(1, 20),
    st.integers(1, 30),
    st.sampled_from([0, 40_000, 1 << 28]),
)
def test_warm_prompts_give_the_tokens_of_cold_ones(prompts, block, chunk, budget):
    cold = tiny_engine(prefix_bytes=0)
    warm = tiny_engine(prefix_bytes=budget, block=block, prefill_chunk=chunk)
    for ids in prompts:
        expected, steps = run(cold, ask(ids, 4)), run(warm, ask(ids, 4))
        assert ids_of(steps) == ids_of(expected)
        assert steps[0].cached_tokens % block == 0
        assert warm._prefix.bytes <= budget


@pytest.mark.parametrize("block", [4, 8, 50])
def test_a_branch_is_taken_up_far_beyond_the_window(block):
    engine, trunk = tiny_engine(block=block, prefill_chunk=32), some_ids(150)
    run(engine, ask(trunk, 40))
    branch = [*trunk[:110], *some_ids(40, 1)]
    steps = run(engine, ask(branch, 20))
    assert steps[0].cached_tokens == 110 // block * block
    assert ids_of(steps) == ids_of(run(tiny_engine(prefix_bytes=0), ask(branch, 20)))


def test_all_but_the_last_token_of_a_prompt_may_be_known_and_answers_are_known_too():
    engine, ids = tiny_engine(block=8, stops=False), some_ids(24)
    cached = [run(engine, ask(prompt, 1))[0].cached_tokens for prompt in (ids, ids, [*ids, 5])]
    assert cached == [0, 16, 24]
    answer = ids_of(run(engine, ask(ids, 20)))
    assert run(engine, ask([*ids, *answer, 3], 1))[0].cached_tokens == 40  # the last was never fed


def test_requests_that_run_together_know_each_others_beginnings():
    engine, ids = tiny_engine(block=8, stops=False), some_ids(60)
    one = engine.generate(ask(ids, 30))
    next(one)
    other = run(engine, ask([*ids[:50], 7], 5))
    assert other[0].cached_tokens == 48
    assert ids_of(other) == ids_of(run(tiny_engine(prefix_bytes=0), ask([*ids[:50], 7], 5)))


def test_reading_in_turns_with_few_seats_finds_its_own_beginning_again():
    requests = [ask(some_ids(40, n), 60) for n in range(4)]
    engine, fills = tiny_engine(block=8, max_batch=1, stops=False), []
    fill = engine._runner.fill
    engine._runner.fill = lambda slot, start, ids, **o: (
        fills.append(start) or fill(slot, start, ids, **o)
    )
    found = in_turns(engine, requests)
    assert found == [ids_of(run(tiny_engine(stops=False), one)) for one in requests]
    assert fills.count(0) == 4
    assert len(fills) > 4
