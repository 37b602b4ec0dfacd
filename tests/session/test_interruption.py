"""Stopping in the middle: the engine stops at once, and the history tells the truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

import atem
from atem.errors import EngineError, OptionError
from atem.session import Session, ToolEnd, ToolStart, TurnStart
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import DONE, THOUGHT, Ran, block, call, invoke, of, results, session

BOTH = block(invoke("note", text="a"), invoke("note", text="b"), to="note")


class Watched(ScriptedEngine):
    """Knows how far its last generation went, and whether it was closed.

    It holds on to the generation, as one that runs in another thread does.
    """

    given, closed = 0, False

    def generate(self, request):
        self.steps = self._watched(super().generate(request))
        return self.steps

    def _watched(self, steps):
        try:
            for step in steps:
                self.given += 1
                yield step
        finally:
            self.closed = True


def stopped_at(talk, kind, message="Go."):
    """Close ``send`` at the first event of a kind."""
    events = talk.send(message)
    for event in events:
        if isinstance(event, kind):
            break
    events.close()


def test_closing_stops_the_engine_at_once():
    engine = Watched([THOUGHT + DONE, DONE])
    stopped_at(Session(engine), atem.ReasoningDelta)
    assert engine.closed
    assert engine.given < 10


def test_a_half_written_turn_is_forgotten_and_the_message_is_kept():
    talk = session(THOUGHT + DONE, DONE)
    stopped_at(talk, atem.ReasoningDelta)
    assert talk.history == (atem.Message("user", "Go."),)
    assert list(talk.send("Go on."))[-1].reason == "done"


def test_a_turn_that_was_written_to_its_end_is_kept():
    talk = session(DONE)
    stopped_at(talk, atem.TurnEnd)
    assert [message.content for message in talk.history] == ["Go.", "It is so."]


def test_stopping_at_the_end_of_a_turn_runs_none_of_its_calls():
    ran = Ran()
    talk = session(BOTH, DONE, ran=ran)
    stopped_at(talk, atem.TurnEnd)
    assert ran == []
    assert results(talk) == ["Stopped before this call began. It was not run."] * 2


def test_calls_of_a_half_written_turn_never_run():
    ran = Ran()
    talk = session(BOTH, DONE, ran=ran)
    stopped_at(talk, atem.CallEnd)
    assert (ran, results(talk)) == ([], [])


def test_stopping_before_a_call_says_that_it_did_not_run():
    ran = Ran()
    talk = session(BOTH, DONE, ran=ran)
    stopped_at(talk, ToolStart)
    assert ran == []
    assert results(talk) == ["Stopped before this call began. It was not run."] * 2


def test_stopping_between_two_calls_keeps_the_first_result():
    ran = Ran()
    talk = session(BOTH, DONE, ran=ran)
    stopped_at(talk, ToolEnd)
    assert ran == ["a"]
    assert results(talk) == ["noted a", "Stopped before this call began. It was not run."]


def test_an_interrupt_inside_a_tool_says_that_nobody_knows():
    def run(call):
        raise KeyboardInterrupt

    talk = session(BOTH, DONE, run=run)
    with pytest.raises(KeyboardInterrupt):
        list(talk.send("?"))
    assert results(talk)[0].startswith("Stopped while this call ran. It may have had an effect")
    assert results(talk)[1].startswith("Stopped before")
    assert list(talk.send("Go on."))[-1].reason == "done"


def test_an_engine_that_fails_at_the_first_turn_leaves_the_history_as_it_was():
    talk = session(DONE)
    list(talk.send("?"))
    before = talk.history
    with pytest.raises(EngineError, match="script is over"):
        list(talk.send("More?"))
    assert talk.history == before


def test_an_engine_that_fails_later_leaves_whole_turns():
    talk = session(call("note", text="a"))
    with pytest.raises(EngineError):
        list(talk.send("?"))
    assert [message.role for message in talk.history] == ["user", "assistant", "tool"]


def test_nothing_happens_before_the_first_event_is_asked_for():
    talk = session(DONE)
    talk.send("?")
    assert talk.history == ()
    assert not talk._engine.requests


def test_two_sends_at_once_are_refused():
    talk = session(DONE, DONE)
    first = talk.send("?")
    assert next(first) == TurnStart(1)
    with pytest.raises(OptionError, match="another send"):
        next(talk.send("And this?"))
    assert of(TurnStart, first) == []  # the first goes on
    assert list(talk.send("And now?"))[-1].reason == "done"


MIXED = [
    THOUGHT
    + block(invoke("note", text="a"), invoke("nothing"), invoke("note", text="bad"), to="note"),
    call("note", text="b"),
    " to=user<|message|>So.<|eot|>",
]


def interrupted(number, interrupt):
    """A session of which ``interrupt`` ended a send behind that many events, and what had run."""
    ran = Ran()
    talk = session(*MIXED, ran=ran)
    events = talk.send("Go.")
    for _, _ in zip(range(number), events, strict=False):
        pass
    interrupt(events)
    return talk, ran


def thrown(events):
    with pytest.raises(KeyboardInterrupt):
        events.throw(KeyboardInterrupt)


@pytest.mark.parametrize("interrupt", [lambda events: events.close(), thrown])
def test_wherever_it_is_stopped_the_history_says_of_each_call_whether_it_ran(interrupt):
    told = {"a": "noted a", "b": "noted b", "bad": "ValueError: it is bad"}
    for number in range(len(list(session(*MIXED).send("Go.")))):
        talk, ran = interrupted(number, interrupt)
        calls = [call for message in talk.history for call in message.calls]
        assert len(results(talk)) == len(calls)
        for made, text in zip(calls, results(talk), strict=True):
            if isinstance(made, atem.RejectedCall):
                assert "This call was not run." in text
            else:
                value = made.arguments["text"]
                assert text == told[value] if value in ran else text.endswith("It was not run.")
        assert Session(talk._engine, tools=ran.tools, history=talk.history)  # it renders
    assert ran == ["a", "bad", "b"]


def test_a_stream_that_ends_without_saying_why_was_cut():
    ran = Ran()
    engine = Unfinished([BOTH, DONE])
    talk = Session(engine, tools=ran.tools, policy=atem.allow_all)
    assert list(talk.send("?"))[-1].reason == "done"
    assert ran == []
    assert all("cut off" in text for text in results(talk))


class Unfinished(ScriptedEngine):
    """Its first turn breaks off behind the last call, and nobody says so."""

    def generate(self, request):
        steps = super().generate(request)
        if len(self.requests) == 1:
            return iter(
                [replace(step, finish=None, piece="") if step.finish else step for step in steps]
            )
        return steps
