"""How a task ends when it doesn't end well, and that cut turns run nothing."""

from __future__ import annotations

from dataclasses import fields

import pytest

import atem
from atem.errors import OptionError
from atem.session import Feedback, Limits, Session, ToolEnd, ToolStart, TurnStart
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import DONE, THOUGHT, Ran, block, call, invoke, of, results, session

NOTE = call("note", text="a")
CUT = NOTE.removesuffix("<|eot|>")
"""A turn that was cut behind a call that is whole."""


def ended(talk):
    events = list(talk.send("?"))
    return events, events[-1].reason


def test_an_answer_is_the_end():
    assert ended(session(DONE))[1] == "done"


@pytest.mark.parametrize("nothing", [" to=self<|message|>Hm.<|eot|>", "<|eot|>"])
def test_a_turn_without_answer_and_call_is_empty(nothing):
    assert ended(session(nothing))[1] == "empty"


def test_the_model_is_asked_no_more_often_than_allowed():
    talk = session(*(call("note", text=str(n)) for n in range(9)), limits=Limits(turns=4))
    events, reason = ended(talk)
    assert (len(of(TurnStart, events)), reason) == (4, "turns")


@pytest.mark.parametrize(
    "failing", [call("note", text="bad"), call("nothing", text="a"), call("note", txt="a")]
)
def test_the_same_failing_call_three_times_is_the_end(failing):
    events, reason = ended(session(failing, failing, failing, DONE))
    assert (len(of(ToolEnd, events)) + len(of(Feedback, events)), reason) == (3, "repeated")


def test_a_call_that_is_denied_again_and_again_is_the_end():
    talk = session(NOTE, NOTE, NOTE, DONE, policy=lambda call: atem.Deny())
    assert ended(talk)[1] == "repeated"


def test_different_failing_calls_are_not_the_same():
    turns = [call("nothing", text=str(n)) for n in range(6)]
    assert ended(session(*turns, DONE))[1] == "done"


def test_a_call_that_works_meanwhile_starts_from_nought():
    outcomes = iter("ffdffd")

    def run(call):
        if next(outcomes) == "f":
            raise ValueError("not now")
        return "done"

    assert ended(session(*[NOTE] * 6, DONE, run=run))[1] == "done"


def test_another_send_starts_from_nought():
    bad = call("note", text="bad")
    talk = session(bad, bad, DONE, bad, bad, DONE)
    assert [ended(talk)[1], ended(talk)[1]] == ["done", "done"]


@pytest.mark.parametrize(
    "cut",
    [
        CUT,
        CUT.removesuffix("</atem:function_calls>"),
        CUT[:100],
        THOUGHT + CUT,
        block(invoke("note", text="a"), invoke("note", text="b"), to="note")[:-30],
    ],
)
def test_nothing_of_a_cut_turn_runs_and_the_model_is_told(cut):
    ran = Ran()
    talk = session(cut, DONE, ran=ran)
    events, reason = ended(talk)
    assert (ran, reason) == ([], "done")
    assert not of(ToolStart, events)
    assert results(talk)
    assert all("not run" in text for text in results(talk))


def test_a_whole_call_in_a_cut_turn_is_answered_as_cut():
    events, _ = ended(session([atem.Step(piece=CUT, finish="length")], DONE))
    assert of(atem.CallEnd, events)
    (end,) = of(ToolEnd, events)
    assert (end.outcome, of(ToolStart, events)) == ("cut", [])


def test_a_turn_that_an_engine_aborts_is_cut():
    ran = Ran()
    aborted = [atem.Step(piece=NOTE), atem.Step(finish="abort")]
    events, _ = ended(session(aborted, DONE, ran=ran))
    assert not ran
    assert not of(atem.TurnEnd, events)[0].complete


def test_cut_turns_are_answered_only_so_often_and_are_no_failure_of_the_call():
    turns = [call("note", text="the same").removesuffix("<|eot|>")] * 9
    events, reason = ended(session(*turns, limits=Limits(cuts=2)))
    assert (len(of(TurnStart, events)), reason) == (3, "cut")


def test_an_answer_that_was_cut_is_the_end_and_is_kept():
    talk = session(" to=user<|message|>It is", limits=Limits(tokens=1000))
    assert ended(talk)[1] == "cut"
    assert talk.history[-1].content == "It is"


def test_the_limit_of_tokens_cuts():
    talk = session(DONE, limits=Limits(tokens=5))
    assert ended(talk)[1] == "cut"


def test_a_prompt_that_is_too_long_is_an_end_and_is_taken_back():
    talk = Session(ScriptedEngine([DONE, DONE], context=2000))
    events = list(talk.send("long " * 2000))
    assert events[-1].reason == "context"
    assert "2000" in events[-1].text
    assert talk.history == ()
    assert list(talk.send("short"))[-1].reason == "done"


def test_a_result_that_is_too_long_is_an_end_and_the_history_tells_it():
    ran = Ran()
    engine = ScriptedEngine([NOTE, DONE], context=6000)
    talk = Session(engine, tools=ran.tools, policy=atem.allow_all, run=lambda call: "long " * 6000)
    assert list(talk.send("?"))[-1].reason == "context"
    assert [message.role for message in talk.history] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_a_limit_is_a_whole_number_above_0(name, value):
    with pytest.raises(OptionError, match=name):
        Limits(**{name: value})
