"""Between the engine's thread and the loop: bounds, order and places."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from atem.responses.faults import ApiError
from atem.server.handover import Handover, Interrupt, Waker
from atem.server.slots import Slots


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def handed_over(most, patience):
    return Handover(most, patience, Waker(asyncio.get_running_loop()))


def test_everything_that_is_put_is_taken_once_and_in_order():
    async def scenario():
        handover = handed_over(4, 5.0)

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
        handover = handed_over(2, 0.2)
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
        return put, handover.closed

    assert asyncio.run(scenario()) == ([0, 1, "given up"], True)


def test_closing_wakes_a_thread_that_waits_for_room():
    async def scenario():
        handover = handed_over(1, 30.0)
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
        return ends[0] - closed

    assert asyncio.run(scenario()) < 0.2


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
