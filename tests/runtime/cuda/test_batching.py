"""Requests share passes and know nothing of each other: in turns, in threads, in any number."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.engine import Sampling
from atem.runtime.cuda.schedule import PATIENCE
from atem.testing.driving import ids_of, in_turns, run
from tests.runtime.cuda.models import ask, some_ids, tiny_engine

LENGTHS = [1, 3, 8, 17, 30, 55, 90, 200]
REQUESTS = [ask(some_ids(n, n), 10 + n % 7) for n in LENGTHS]


@pytest.fixture(scope="module")
def alone():
    """What each of REQUESTS gives in an engine of its own."""
    return [ids_of(run(tiny_engine(), request)) for request in REQUESTS]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("chunk", [7, 256])
def test_a_ragged_batch_of_eight_gives_what_eight_single_runs_give(alone, static, chunk):
    engine = tiny_engine(prefill_chunk=chunk, static=static, prefix_bytes=0)
    assert in_turns(engine, REQUESTS) == alone


def test_they_really_share_passes():
    engine, sizes = tiny_engine(stops=False), []
    decode = engine._runner.decode
    engine._runner.decode = lambda *rows: sizes.append(rows[1]) or decode(*rows)
    in_turns(engine, [ask(some_ids(4, n), 30) for n in range(8)])
    assert sizes.count(8) >= 20


def test_every_thread_gets_its_own_tokens(alone):
    with closing(tiny_engine(max_batch=3, prefill_chunk=16)) as engine:
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda one: ids_of(run(engine, one)), REQUESTS * 3))
        assert not engine._schedule.seats
        assert not engine._schedule.waiting
    assert found == alone * 3


@pytest.mark.parametrize("seats", [1, 2, 5])
@pytest.mark.parametrize("prefix_bytes", [0, 1 << 20])
def test_one_thread_may_read_more_iterators_in_turns_than_there_are_seats(
    alone, seats, prefix_bytes
):
    engine = tiny_engine(max_batch=seats, prefix_bytes=prefix_bytes, block=4)
    assert in_turns(engine, REQUESTS) == alone


def test_a_waiting_iterator_is_served_though_all_seats_are_held_and_never_read_again():
    engine = tiny_engine(max_batch=2, stops=False)
    held = [engine.generate(ask(some_ids(5, n), 400)) for n in range(2)]
    begun = [[next(one), next(one)] for one in held]
    assert len(run(engine, ask(some_ids(9), 5))) == 5
    # Those that were put aside for it go on where they were.
    for n in range(2):
        steps = [*begun[n], *itertools.islice(held[n], 40)]
        assert ids_of(steps) == ids_of(run(engine, ask(some_ids(5, n), 42)))


def test_nobody_gets_far_ahead_of_its_reader():
    engine = tiny_engine(stops=False)
    slow = engine.generate(ask(some_ids(5), 300))
    next(slow)
    [job] = engine._schedule.seats
    assert len(run(engine, ask(some_ids(6), 100))) == 100
    assert len(job.steps) == PATIENCE
    assert len(list(slow)) == 299


def test_a_seed_gives_the_same_tokens_in_any_company():
    hot = Sampling(temperature=5.0, top_k=0, top_p=1.0, seed=3)
    warm = Sampling(temperature=1.5, top_k=9, seed=4, logprobs=2)
    requests = [ask(some_ids(8, n), 15, sampling=(hot, warm)[n % 2]) for n in range(8)]
    alone = [ids_of(run(tiny_engine(), request)) for request in requests]
    assert in_turns(tiny_engine(), requests) == alone


moves = st.lists(
    st.tuples(st.sampled_from(["begin", "step", "close"]), st.integers(0, 7)), max_size=60
)


@settings(max_examples=30)
@given(moves, st.integers(1, 5), st.booleans())
def test_joining_reading_and_leaving_in_any_order_changes_no_token(alone, moves, seats, static):
    engine = tiny_engine(max_batch=seats, prefill_chunk=16, block=8, static=static)
    running, read = {}, {}
    for move, n in moves:
        if move == "begin":
            running.setdefault(n, engine.generate(REQUESTS[n]))
            read.setdefault(n, [])
        elif move == "step" and n in running:
            read[n] += ids_of(itertools.islice(running[n], 1))
        elif n in running:
            running.pop(n).close()
            assert read[n] == alone[n][: len(read.pop(n))]
    for n, one in running.items():
        assert read[n] + ids_of(one) == alone[n]
