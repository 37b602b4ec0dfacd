"""The loop: turns, calls, answers, in the order in which they happen."""

from __future__ import annotations

import pytest

import atem
from atem.errors import InvalidTool, OptionError, RenderError
from atem.session import Feedback, Session, TaskEnd, ToolEnd, ToolStart, TurnStart
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import DONE, THOUGHT, Ran, block, call, invoke, of, results, session


def test_the_events_of_a_turn_are_the_parsers_own():
    script = THOUGHT + DONE
    engine = ScriptedEngine([script, script])
    events = list(Session(engine).send("Is it so?"))
    steps = engine.generate(engine.requests[0])
    parsed = list(atem.parse_stream(steps, tokenizer=engine.tokenizer))
    assert events == [TurnStart(1), *parsed, TaskEnd("done", "the model answered")]


def test_a_call_runs_after_its_turn_and_the_model_is_told_its_result():
    ran = Ran()
    talk = session(THOUGHT + call("note", text="a"), DONE, ran=ran)
    seen = []
    for event in talk.send("Note a."):
        seen.append(event)
        if isinstance(event, atem.CallEnd | atem.TurnEnd | ToolStart):
            assert ran == ([] if len(of(ToolEnd, seen)) == 0 else ["a"])
    kinds = [type(event) for event in seen if not isinstance(event, atem.ArgumentsDelta)]
    order = [kinds.index(kind) for kind in (atem.CallEnd, atem.TurnEnd, ToolStart, ToolEnd)]
    assert order == sorted(order)
    assert (ran, results(talk)) == (["a"], ["noted a"])


def test_the_next_prompt_holds_the_turn_and_the_result():
    engine = ScriptedEngine([call("note", text="a"), DONE])
    talk = Session(engine, tools=Ran().tools, policy=atem.allow_all)
    list(talk.send("Note a."))
    text = engine.requests[1].prompt.text()
    assert call("note", text="a") in text
    assert '<|start|>tool note<|message|><tool_output name="note">\nnoted a\n</tool_output>' in text


def test_parallel_calls_run_in_order():
    ran = Ran()
    both = block(invoke("note", text="a"), invoke("note", text="b"), to="note")
    talk = session(both, DONE, ran=ran)
    list(talk.send("Both."))
    assert (ran, results(talk)) == (["a", "b"], ["noted a", "noted b"])


def test_a_tool_that_raises_answers_with_its_error():
    talk = session(call("note", text="bad"), DONE)
    (end,) = of(ToolEnd, talk.send("?"))
    assert (end.text, end.outcome) == ("ValueError: it is bad", "failed")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (call("not", text="a"), "There is no tool called 'not'."),
        (call("note", txt="a"), "don't fit its schema"),
        (block("<atem:invoke name=note></atem:invoke>", to="note"), "not in the form of a tool"),
        (call("note", text="a", more="b"), "don't fit its schema"),
    ],
)
def test_a_rejected_call_is_answered_and_never_run(written, told):
    ran = Ran()
    talk = session(written, DONE, ran=ran)
    events = list(talk.send("?"))
    (feedback,) = of(Feedback, events)
    assert told in feedback.text
    assert results(talk) == [feedback.text]
    assert not ran
    assert not of(ToolStart, events)
    assert events[-1].reason == "done"


def test_calls_and_rejections_are_answered_in_the_models_order():
    mixed = block(invoke("nothing"), invoke("note", text="b"), to="note")
    talk = session(mixed, DONE)
    list(talk.send("?"))
    first, second = results(talk)
    assert "no tool called 'nothing'" in first
    assert second == "noted b"


def test_a_result_that_is_no_text_is_json():
    def count() -> dict[str, int]:
        """Count."""
        return {"é": 1}

    talk = session(call("count"), DONE, tools=[count])
    list(talk.send("?"))
    assert results(talk) == ['{"é": 1}']


def test_a_result_without_a_json_form_is_told_as_one_of_a_call_that_ran():
    def count() -> bytes:
        """Count."""
        return b"3"

    talk = session(call("count"), DONE, tools=[count])
    (end,) = of(ToolEnd, talk.send("?"))
    assert end.text.startswith("TypeError: it ran, but its result has no JSON form: ")


def test_a_run_that_gives_no_text_is_the_callers_mistake():
    talk = session(call("note", text="a"), DONE, run=lambda call: None)
    with pytest.raises(OptionError, match="run gave a NoneType"):
        list(talk.send("?"))
    assert results(talk)[0].startswith("Stopped while this call ran.")


def test_half_a_character_in_a_result_does_not_stop_the_session():
    def read() -> str:
        """Read."""
        return "a\ud800b"

    talk = session(call("read"), DONE, tools=[read])
    assert list(talk.send("?"))[-1].reason == "done"
    assert results(talk) == ["a\ufffd\ufffd\ufffdb"]


def test_run_is_what_runs_calls():
    talk = session(call("note", text="a"), DONE, run=lambda call: f"ran {call.arguments}")
    list(talk.send("?"))
    assert results(talk) == ["ran {'text': 'a'}"]


def test_tools_without_a_function_need_run():
    with pytest.raises(OptionError, match="no function; give run="):
        session(tools=[atem.Tool("note")])
    session(tools=[atem.Tool("note")], run=lambda call: "")


def test_an_async_tool_needs_run():
    async def note() -> str:
        """Note."""

    with pytest.raises(OptionError, match="async function; give run="):
        session(tools=[note])


def test_the_system_message_and_the_strength_are_in_every_prompt():
    engine = ScriptedEngine([DONE, DONE])
    talk = Session(engine, system="Be brief.", effort="minimal")
    for _ in range(2):
        list(talk.send("?"))
    for request in engine.requests:
        assert "system<|message|>Be brief.\n\nReasoning strength: low." in request.prompt.text()


def test_without_a_system_message_the_prompt_is_the_renderers_default():
    engine = ScriptedEngine([DONE])
    list(Session(engine, reasoning_strength="low").send("?"))
    expected = atem.render([atem.Message("user", "?")], reasoning_strength="low")
    assert engine.requests[0].prompt == expected


def test_sampling_and_the_limit_of_tokens_go_to_the_engine():
    engine = ScriptedEngine([DONE])
    limits = atem.session.Limits(tokens=77)
    list(Session(engine, sampling=atem.GREEDY, limits=limits).send("?"))
    assert (engine.requests[0].sampling, engine.requests[0].max_tokens) == (atem.GREEDY, 77)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"effort": "huge"}, OptionError),
        ({"tools": [atem.Tool("self")], "run": str}, InvalidTool),
        ({"history": [atem.Message("nobody")]}, RenderError),
    ],
)
def test_what_can_not_work_is_said_when_the_session_is_made(options, error):
    with pytest.raises(error):
        session(**options)
