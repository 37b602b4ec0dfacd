"""Who computes next: in order, without gaps, nobody far ahead of its reader."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from atem.runtime.cuda.schedule import PATIENCE, Job, Schedule, longest


def job(length, done=0, steps=0, order=0):
    return Job(
        SimpleNamespace(finished=False), list(range(length)), done=done, order=order,
        steps=deque(range(steps)),
    )  # fmt: skip


def seated(*jobs, chunk=8):
    schedule = Schedule(8, chunk)
    schedule.seats = list(jobs)
    return schedule


def test_a_prompt_is_filled_piece_by_piece_to_its_end():
    one, spans = job(20), []
    schedule = seated(one)
    while (turn := schedule.filling()) is not None:
        spans.append(turn)
        one.done = turn[1].stop
        if one.done == 20:
            one.ids.append(0)
    assert spans == [(0, range(8)), (0, range(8, 16)), (0, range(16, 20))]
    assert schedule.ready() == [0]


def test_whoever_came_first_is_filled_first_wherever_it_sits():
    schedule = seated(job(9, order=3), job(9, 8, order=1), job(9, order=2))
    assert schedule.filling() == (2, range(8))


def test_a_prompt_of_one_token_is_decoded_at_once():
    schedule = seated(job(1))
    assert (schedule.filling(), schedule.ready()) == (None, [0])


def test_whoever_is_not_read_is_not_advanced():
    schedule = seated(job(5, 4, PATIENCE), job(5, 4, PATIENCE - 1), job(5, 2))
    assert schedule.ready() == [1]


def test_the_longest_pays_and_of_two_the_later_one():
    jobs = [job(5, order=1), job(9, order=2), job(9, order=3), job(2, order=4)]
    assert longest(jobs) is jobs[2]


class Seats(RuleBasedStateMachine):
    """Jobs come and go; a cache follows every move, and each finds its own data there."""

    def __init__(self):
        super().__init__()
        self.schedule = Schedule(4, 8)
        self.known: list[Job] = []
        self.cache: dict[int, Job] = {}

    @rule()
    def ask_new(self):
        self.known.append(job(3))
        self.schedule.ask(self.known[-1])

    @rule(data=st.data())
    def ask_again(self, data):
        if self.known:
            self.schedule.ask(data.draw(st.sampled_from(self.known)))

    @rule()
    def admit(self):
        if self.schedule.waiting and self.schedule.has_seat:
            self.schedule.seats.append(self.schedule.waiting.popleft())
            self.cache[len(self.schedule.seats) - 1] = self.schedule.seats[-1]

    @rule(data=st.data())
    def leave(self, data):
        if self.known:
            gone = data.draw(st.sampled_from(self.known))
            if (gap := self.schedule.gap(gone)) is not None:
                self.cache[gap[1]] = self.cache[gap[0]]
            self.schedule.leave(gone)
            assert gone not in self.schedule.seats
            assert gone not in self.schedule.waiting

    @invariant()
    def everybody_has_its_own_data_and_one_place(self):
        seats, waiting = self.schedule.seats, list(self.schedule.waiting)
        assert [self.cache[seat] for seat in range(len(seats))] == seats
        assert len({id(one) for one in seats + waiting}) == len(seats) + len(waiting)
        assert len(seats) <= 4

    @invariant()
    def the_idlest_was_asked_first(self):
        if self.schedule.seats:
            first = min(one.asked for one in self.schedule.seats)
            assert self.schedule.idlest().asked == first


TestSeats = Seats.TestCase


@given(st.integers(1, 50), st.integers(1, 20))
def test_pieces_cover_a_prompt_once_but_for_its_last_token(length, chunk):
    one, covered = job(length), []
    schedule = seated(one, chunk=chunk)
    while (turn := schedule.filling()) is not None:
        assert len(turn[1]) <= chunk
        covered += turn[1]
        one.done = turn[1].stop
        if one.done == length:
            break
    # The last token may be left alone, and is decoded then.
    assert covered in (list(range(length)), list(range(length - 1)))
