"""Whether a call may run: the policy, and the person that it may ask."""

from __future__ import annotations

import pytest

import atem
from atem.errors import OptionError
from atem.session import ToolEnd, ToolStart
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import DONE, Ran, block, call, invoke, of, session

ASKED = call("note", text="a")


def decided(policy, **options):
    """What was run, and the end of the call, under a policy."""
    ran = Ran()
    events = list(session(ASKED, DONE, ran=ran, policy=policy, **options).send("?"))
    (end,) = of(ToolEnd, events)
    assert len(of(ToolStart, events)) == len(ran)
    return ran, end


def test_an_allowed_call_runs():
    ran, end = decided(atem.allow_all)
    assert (ran, end.outcome) == (["a"], "done")


def test_a_denied_call_does_not_run_and_the_model_hears_why():
    ran, end = decided(lambda call: atem.Deny("only on Mondays"))
    assert (ran, end.outcome) == ([], "denied")
    assert end.text == "This call is not allowed. It was not run. only on Mondays"


@pytest.mark.parametrize("policy", [atem.ask_all, lambda call: None])
def test_without_anybody_to_ask_a_question_is_a_denial(policy):
    ran, end = decided(policy)
    assert (ran, end.outcome) == ([], "denied")
    assert "nobody to ask" in end.text


def test_by_default_a_person_decides():
    ran = Ran()
    talk = atem.Session(ScriptedEngine([ASKED, DONE]), tools=ran.tools)
    (end,) = of(ToolEnd, talk.send("?"))
    assert (ran, end.outcome) == ([], "denied")


def test_the_person_is_asked_with_the_call_and_the_question():
    heard = []

    def ask(call, question):
        heard.append((call.arguments, question))
        return True

    ran, end = decided(lambda call: atem.Ask("Really?"), ask=ask)
    assert (ran, end.outcome, heard) == (["a"], "done", [({"text": "a"}, "Really?")])


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
def test_only_true_is_a_yes(answer):
    ran, end = decided(atem.ask_all, ask=lambda call, question: answer)
    assert (ran, end.outcome) == ([], "denied")
    assert "did not allow" in end.text


def test_each_call_of_a_turn_is_decided_by_itself():
    both = block(invoke("note", text="a"), invoke("note", text="b"), to="note")
    ran = Ran()
    only_b = lambda call: atem.Allow() if call.arguments["text"] == "b" else atem.Deny()  # noqa: E731
    ends = of(ToolEnd, session(both, DONE, ran=ran, policy=only_b).send("?"))
    assert (ran, [end.outcome for end in ends]) == (["b"], ["denied", "done"])


def test_a_policy_that_gives_no_decision_stops_everything():
    ran = Ran()
    talk = session(ASKED, DONE, ran=ran, policy=lambda call: True)
    with pytest.raises(OptionError, match="answer with Allow"):
        list(talk.send("?"))
    assert not ran
    assert talk.history[-1].content == "Stopped before this call began. It was not run."
