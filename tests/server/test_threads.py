"""Between the engine's thread and the loop: bounds, order, places, and stopping."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from atem.engine import Request
from atem.responses.faults import ApiError
from atem.server.handover import Handover
from atem.server.interrupt import Interrupt, Interruptible
from atem.server.slots import Slots
from atem.testing.scripted import ScriptedEngine
from tests.server.running import LONG, paced


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_everything_that_is_put_is_taken_once_and_in_order():
    async def scenario():
        handover = Handover(4, 5.0)

        def put():
            for number in range(1000):
                handover.put(number)
            handover.end()

        thread = in_thread(put)
        taken = []
        while part := await handover.take():
            assert len(part) <= 4
            taken += part
        thread.join()
        return taken

    assert asyncio.run(scenario()) == list(range(1000))


def test_a_full_one_holds_the_thread_and_gives_the_reader_up_in_the_end():
    async def scenario():
        handover = Handover(2, 0.2)
        put = []

        def work():
            try:
                for number in range(10):
                    handover.put(number)
                    put.append(number)
            except Interrupt:
                put.append("given up")

        thread = in_thread(work)
        await asyncio.to_thread(thread.join)
        return put, handover.abandoned

    assert asyncio.run(scenario()) == ([0, 1, "given up"], True)


def test_closing_wakes_a_thread_that_waits_for_room():
    async def scenario():
        handover = Handover(1, 30.0)
        ends = []

        def work():
            handover.put(1)
            try:
                handover.put(2)
            except Interrupt:
                ends.append(time.monotonic())

        thread = in_thread(work)
        await asyncio.sleep(0.05)
        closed = time.monotonic()
        handover.close()
        await asyncio.to_thread(thread.join)
        return ends[0] - closed, handover.abandoned

    took, abandoned = asyncio.run(scenario())
    assert took < 0.2
    assert not abandoned


def test_places_are_given_first_come_first_served_and_leaving_a_queue_gives_nothing_away():
    async def scenario():
        slots = Slots(1, 2)
        first, second, third = slots.enter(), slots.enter(), slots.enter()
        assert (slots.running, slots.waiting) == (1, 2)
        with pytest.raises(ApiError) as refused:
            slots.enter()
        assert refused.value.status == 429
        second.leave()
        assert await second.turn() is False
        assert (slots.running, slots.waiting) == (1, 1)
        first.leave()
        first.leave()
        assert await third.turn() is True
        third.leave()
        assert (slots.running, slots.waiting) == (0, 0)

    asyncio.run(scenario())


def test_stopping_ends_the_next_step_and_closes_the_engine_s_iterator():
    engine = Interruptible(ScriptedEngine([LONG]))
    steps = engine.generate(Request([1, 2]))
    next(steps)
    engine.stop()
    with pytest.raises(Interrupt):
        next(steps)
    with pytest.raises(Interrupt):
        engine.generate(Request([1]))


def test_a_thread_that_waits_for_an_engine_is_woken():
    engine = Interruptible(paced([LONG], first=30))
    ends = []

    def work():
        try:
            list(engine.generate(Request([1, 2])))
        except Interrupt:
            ends.append(True)

    thread = in_thread(work)
    time.sleep(0.05)
    engine.stop()
    engine.cut()
    thread.join(5)
    assert ends == [True]


def test_closing_the_engine_of_a_reply_leaves_the_engine_open_for_others():
    shared = ScriptedEngine([LONG, LONG])
    Interruptible(shared).close()
    assert next(shared.generate(Request([1]))).ids
