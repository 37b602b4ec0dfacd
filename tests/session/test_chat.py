"""The same conversation for servers that are asked by chat completions; the renderer is the oracle."""

from __future__ import annotations

import atem
from atem.render.chat_form import chat_of
from atem.session import Session
from atem.testing.scripted import ScriptedEngine
from tests.runtime.remote.dialects import speaking
from tests.session.scripts import DONE, THOUGHT, Ran, block, call, invoke, session

WELL = [
    THOUGHT + call("note", text="a"),
    block(invoke("note", text="b"), invoke("note", text="c"), to="note"),
    THOUGHT + DONE,
]
TOOLS = atem.ToolSet(Ran().tools)


def finished(*turns):
    talk = session(*turns, system="Be brief.")
    list(talk.send("é?"))
    return talk.history


def test_it_renders_to_the_same_prompt():
    history = finished(*WELL)[:-2]
    chat = chat_of([*history, atem.Message("user", "And?")], TOOLS)
    again = atem.render(chat["messages"], tools=chat["tools"])
    expected = atem.render([*history, atem.Message("user", "And?")], tools=TOOLS)
    separate = expected.text().replace(  # two calls of one block are two messages there
        "</atem:invoke>\n<atem:invoke",
        "</atem:invoke>\n</atem:function_calls><|eom|><|start|>assistant to=note<|message|>"
        "<atem:function_calls>\n<atem:invoke",
    )
    assert again.text() == separate


def test_each_call_has_its_answer_by_its_id_rejected_ones_too():
    mixed = block(invoke("nothing"), invoke("note", text="b"), to="note")
    messages = chat_of(finished(mixed, call("nothing", x="1"), DONE), TOOLS)["messages"]
    calls = [each["id"] for m in messages for each in m.get("tool_calls", ())]
    assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert len({*calls}) == 3


def test_content_that_is_more_than_text_has_no_such_shape():
    image = atem.Message("user", ("Look: ", atem.ImagePart(b"")))
    assert chat_of([image], TOOLS) is None
    parts = atem.Message("user", ("Look", atem.TextPart("!")))
    assert chat_of([parts], atem.ToolSet()) == {"messages": [{"role": "user", "content": "Look!"}]}


def test_only_an_engine_that_wants_it_gets_it():
    engine = ScriptedEngine([DONE])
    list(Session(engine).send("?"))
    assert engine.requests[0].chat is None


def test_a_server_that_takes_the_turn_apart_can_be_used():
    answers = iter(
        [
            [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "note", "arguments": '{"text": "a"}'}}]}, "tool_calls"],
            [{"reasoning_content": "Hm."}, {"content": "It is so."}, "stop"],
        ]
    )  # fmt: skip
    probing = [{"content": "x"}, "length"]
    ran = Ran()
    told = lambda body: next(answers) if "tools" in body else probing  # noqa: E731
    with speaking("vllm", chat=told) as server:
        engine = atem.load(server.url, form="chat")
        talk = Session(engine, tools=ran.tools, policy=atem.allow_all, effort="low")
        events = list(talk.send("?"))
        engine.close()
    assert (ran, events[-1].reason) == (["a"], "done")
    body = server.bodies[-1]
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "tool"]
    assert body["chat_template_kwargs"] == {"reasoning_strength": "low"}
