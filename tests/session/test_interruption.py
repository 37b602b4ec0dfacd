"""Stopping in the middle: the engine stops at once, and the history tells the truth."""

from __future__ import annotations

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
