"""How a request ends before its time, and that the others, and the engine, go on."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from contextlib import closing

import pytest
import torch

from atem.errors import ContextOverflow, EngineClosed, EngineError, OutOfMemory
from atem.testing.driving import ids_of, run
from tests.runtime.cuda.models import ask, some_ids, tiny_engine


def seats(engine):
    return len(engine._schedule.seats) + len(engine._schedule.waiting)


@pytest.fixture
def engine():
    with closing(tiny_engine(stops=False, prefill_chunk=8, max_batch=3)) as engine:
        yield engine


@pytest.fixture
def expected():
    """What ``ask(some_ids(20), 12)`` gives, undisturbed."""
    return ids_of(run(tiny_engine(stops=False), ask(some_ids(20))))


# -- closing --------------------------------------------------------------------


def test_an_iterator_takes_no_seat_before_its_first_step(engine):
    one = engine.generate(ask(some_ids(5)))
    assert seats(engine) == 0
    next(one)
    assert seats(engine) == 1


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_closing_gives_the_seat_back_at_once(engine, expected, taken):
    one, other = engine.generate(ask(some_ids(5))), engine.generate(ask(some_ids(20)))
    list(itertools.islice(one, taken))
    begun = [next(other)]
    one.close()
    assert seats(engine) == 1
    assert ids_of([*begun, *other]) == expected
    assert seats(engine) == 0


def test_dropping_an_iterator_closes_it(engine):
    one = engine.generate(ask(some_ids(5)))
    next(one)
    del one
    gc.collect()
    assert seats(engine) == 0


def test_a_prompt_may_be_given_up_while_it_is_filled(engine, expected):
    """The thread that asked is gone: here, by an interrupt in the third of many pieces."""
    fill, calls = engine._runner.fill, itertools.count()

    def interrupted(*args, **options):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return fill(*args, **options)

    engine._runner.fill = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(engine.generate(ask(some_ids(100))))
    assert seats(engine) == 0
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_the_collector_may_close_an_iterator_in_the_middle_of_a_step(engine, expected):
    doomed = engine.generate(ask(some_ids(5), 50))
    next(doomed)
    one = engine.generate(ask(some_ids(20)))
    decode = engine._runner.decode

    def collecting(*rows):
        nonlocal doomed
        if doomed is not None:
            doomed = None
            gc.collect()
        return decode(*rows)

    engine._runner.decode = collecting
    assert ids_of(one) == expected
    assert seats(engine) == 0


def test_closing_the_engine_ends_what_runs_and_frees_the_weights(engine):
    one = engine.generate(ask(some_ids(5)))
    next(one)
    weights = weakref.ref(engine._runner._model.weights.layers[0].o)
    engine.close()
    with pytest.raises(EngineClosed):
        next(one)
    with pytest.raises(EngineClosed):
        engine.generate(ask(some_ids(5)))
    gc.collect()
    assert weights() is None


# -- memory ---------------------------------------------------------------------

NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
    MemoryError(),
]


def failing(method, error, when):
    """``method``, but raising ``error`` for calls of which ``when`` is true."""

    def call(*args, **options):
        if when(*args):
            raise error
        return method(*args, **options)

    return call


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_no_memory_for_a_prompt_is_the_failure_of_that_request_alone(engine, expected, error):
    runner = engine._runner
    other = engine.generate(ask(some_ids(20)))
    begun = [next(other)]
    runner.fill = failing(runner.fill, error, lambda slot, start, ids: start == 16)
    with pytest.raises(OutOfMemory) as caught:
        next(engine.generate(ask(some_ids(40))))
    assert caught.value.__cause__ is error
    assert seats(engine) == 1
    assert ids_of([*begun, *other]) == expected


def test_no_memory_for_a_batch_ends_the_longest_request(engine, expected):
    runner = engine._runner
    short, long = engine.generate(ask(some_ids(20))), engine.generate(ask(some_ids(60)))
    begun = [next(short)]
    next(long)
    runner.decode = failing(runner.decode, NO_MEMORY[0], lambda rows, wanted: wanted > 1)
    assert ids_of([*begun, *short]) == expected
    with pytest.raises(OutOfMemory):
        list(long)
    assert seats(engine) == 0


def test_a_request_beyond_cache_bytes_is_refused_and_others_are_not(expected):
    room = tiny_engine(stops=False)._runner.cache.nbytes(1, 256)
    engine = tiny_engine(stops=False, cache_bytes=room)
    run(engine, ask(some_ids(200, 1), 1))
    with pytest.raises(OutOfMemory, match="cache_bytes"):
        next(engine.generate(ask(some_ids(300))))
    assert engine._prefix.bytes > 0  # nothing that is remembered would have helped
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_an_answer_that_outgrows_cache_bytes_ends_and_the_shorter_one_goes_on(expected):
    room = tiny_engine(stops=False)._runner.cache.nbytes(2, 256)
    engine = tiny_engine(stops=False, cache_bytes=room)
    long = engine.generate(ask(some_ids(250), 100))
    next(long)
    short = engine.generate(ask(some_ids(20)))
    begun = [next(short)]
    with pytest.raises(OutOfMemory, match="cache_bytes"):
        list(long)
    assert ids_of([*begun, *short]) == expected


def test_what_is_remembered_makes_room_for_what_runs(engine, expected):
    run(engine, ask(some_ids(200), 2))
    assert engine._prefix.bytes > 0
    cache = engine._runner.cache
    cache.grow = failing(cache.grow, NO_MEMORY[0], lambda *_: engine._prefix.bytes > 0)
    run(engine, ask(some_ids(400), 2))
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_no_memory_to_remember_a_block_is_no_failure(engine, expected):
    runner = engine._runner
    runner.copy = failing(runner.copy, NO_MEMORY[0], lambda *_: True)
    run(engine, ask(some_ids(200), 2))
    assert engine._prefix.bytes == 0
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_no_memory_for_the_weights_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch, "empty", failing(torch.empty, NO_MEMORY[0], lambda *_: True))
    with pytest.raises(OutOfMemory, match="smaller dtype"):
        tiny_engine()


# -- faults ---------------------------------------------------------------------


class BrokenError(Exception):
    """Something nobody thought of."""


@pytest.mark.parametrize("method", ["fill", "choose", "copy", "reserve", "restore"])
def test_a_fault_reaches_its_reader_and_the_engine_goes_on(engine, expected, method):
    runner = engine._runner
    sound = getattr(runner, method)
    setattr(runner, method, failing(sound, BrokenError(), lambda *_: True))
    with pytest.raises(BrokenError):
        run(engine, ask(some_ids(80)))
    setattr(runner, method, sound)
    assert seats(engine) == 0
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_a_fault_of_a_batch_reaches_all_that_were_in_it_and_nobody_else(engine, expected):
    runner = engine._runner
    decode = runner.decode
    pair = [engine.generate(ask(some_ids(5, n), 50)) for n in range(2)]
    for one in pair:
        next(one)
    runner.decode = failing(decode, BrokenError(), lambda *_: True)
    for one in pair:
        with pytest.raises(BrokenError):
            list(one)
    runner.decode = decode
    assert ids_of(run(engine, ask(some_ids(20)))) == expected


def test_a_row_that_cant_be_sampled_from_ends_its_request_alone(engine, expected):
    runner = engine._runner
    other = engine.generate(ask(some_ids(20)))
    begun = [next(other)]
    broken = engine.generate(ask(some_ids(60)))
    next(broken)
    decode = runner.decode

    def spoilt(*rows):
        logits = decode(*rows).clone()
        if len(logits) > 1:
            logits[1, 7] = torch.nan
        return logits

    runner.decode = spoilt
    with pytest.raises(EngineError, match="can't be sampled"):
        list(broken)
    assert ids_of([*begun, *other]) == expected


def test_an_interrupt_of_one_reader_leaves_the_others_alone(engine, expected):
    runner = engine._runner
    other, one = engine.generate(ask(some_ids(20))), engine.generate(ask(some_ids(60)))
    begun = [next(other)]
    next(one)
    decode = runner.decode
    runner.decode = failing(decode, KeyboardInterrupt(), lambda *_: True)
    with pytest.raises(KeyboardInterrupt):
        list(one)
    runner.decode = decode
    assert ids_of([*begun, *other]) == expected


def test_an_interrupt_while_a_token_is_taken_is_told_to_whose_token_it_was(engine):
    other, one = engine.generate(ask(some_ids(20))), engine.generate(ask(some_ids(60)))
    next(other)
    next(one)
    generation = engine._schedule.seats[0].generation
    generation.take = failing(generation.take, KeyboardInterrupt(), lambda *_: True)
    with pytest.raises(KeyboardInterrupt):
        list(one)
    with pytest.raises(EngineError, match="interrupted"):
        list(other)


def test_a_full_context_ends_an_answer_and_refuses_a_prompt():
    engine = tiny_engine(stops=False, context=70)
    steps = run(engine, ask(some_ids(60), 100))
    assert (len(steps), steps[-1].finish) == (10, "length")
    with pytest.raises(ContextOverflow):
        engine.generate(ask(some_ids(70)))


def test_a_step_of_another_thread_doesnt_block_closing(engine):
    one = engine.generate(ask(some_ids(5)))
    next(one)
    decode, inside, go_on = engine._runner.decode, threading.Event(), threading.Event()

    def slow(*rows):
        inside.set()
        assert go_on.wait(10)
        return decode(*rows)

    engine._runner.decode = slow
    reader = threading.Thread(target=lambda: run(engine, ask(some_ids(6), 2)))
    reader.start()
    assert inside.wait(10)
    one.close()
    go_on.set()
    reader.join()
    run(engine, ask(some_ids(3), 1))
    assert seats(engine) == 0
