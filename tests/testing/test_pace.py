"""An engine that keeps time: the same steps, no earlier than they are due, pulled or pushed."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from atem.engine import Request
from atem.errors import EngineClosed
from atem.testing.pace import PacedEngine
from atem.testing.scripted import ScriptedEngine

TURN = " to=user<|message|>Hello there.<|eot|>"


def clocks():
    return [thread for thread in threading.enumerate() if thread.name == "atem-pace"]


def ended(wanted=lambda: not clocks()):
    until = time.monotonic() + 5
    while not wanted() and time.monotonic() < until:
        time.sleep(0.005)
    return wanted()


def pushed(engine):
    """What a generation gives, with the time of each, and its iterator."""
    given = queue.SimpleQueue()
    steps = engine.generate(Request([1]))
    steps.push(lambda step: given.put((time.monotonic(), step)) or True)
    return steps, given


def read(given):
    """All of it up to its end, without that."""
    found = []
    while (last := given.get(timeout=5))[1] is not None:
        found.append(last)
    return found


def test_pushed_steps_are_those_that_are_pulled_and_none_comes_before_it_is_due():
    plain = list(ScriptedEngine([TURN]).generate(Request([1])))
    began = time.monotonic()
    _, given = pushed(PacedEngine(ScriptedEngine([TURN]), gap=0.01, first=0.05))
    found = read(given)
    assert [step for _, step in found] == plain
    assert all(at - began >= 0.05 + 0.01 * place for place, (at, _) in enumerate(found))
    assert list(PacedEngine(ScriptedEngine([TURN]), gap=0.001).generate(Request([1]))) == plain


def test_many_generations_share_one_thread_which_ends_with_the_last():
    engine = PacedEngine(ScriptedEngine([TURN] * 20), gap=0.002)
    all_given = [pushed(engine)[1] for _ in range(20)]
    assert len(clocks()) == 1
    assert len({tuple(step for _, step in read(given)) for given in all_given}) == 1
    assert ended()


def test_one_that_is_closed_ends_at_once_though_its_next_step_is_far_away():
    steps, given = pushed(PacedEngine(ScriptedEngine([TURN]), gap=0, first=0.5))
    began = time.monotonic()
    steps.close()
    assert read(given) == []
    assert time.monotonic() - began < 0.4
    steps.close()
    assert ended()
    assert given.empty()


def test_one_that_is_not_wanted_any_more_ends_and_closes_its_steps():
    closed = []

    class Watched(ScriptedEngine):
        def generate(self, request):
            try:
                yield from super().generate(request)
            finally:
                closed.append(True)

    given = []
    steps = PacedEngine(Watched([TURN]), gap=0).generate(Request([1]))
    steps.push(lambda step: given.append(step) or len(given) < 3)
    assert ended(lambda: len(given) == 4 and given[-1] is None)
    assert closed == [True]


def test_what_the_engine_raises_is_given_as_the_end():
    inner = ScriptedEngine([TURN])
    _, given = pushed(PacedEngine(inner, gap=0.02))
    given.get(timeout=5)
    inner.close()
    while not isinstance(last := given.get(timeout=5)[1], Exception):
        assert last is not None
    assert isinstance(last, EngineClosed)


@pytest.mark.parametrize("closes", [True, False])
def test_whoever_waits_for_a_step_is_woken_by_a_close(closes):
    steps = PacedEngine(ScriptedEngine([TURN]), gap=0, first=30 if closes else 0).generate(
        Request([1])
    )
    found = []
    reader = threading.Thread(target=lambda: found.extend(steps))
    reader.start()
    if closes:
        steps.close()
    reader.join(5)
    assert not reader.is_alive()
    assert bool(found) is not closes
