"""The two other APIs over the same reply, as their own SDKs read them."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from atem.errors import EngineError
from atem.testing.scripted import ScriptedEngine
from tests.server.running import HELLO, MODEL, THOUGHT, Broken, call, running

USER = [{"role": "user", "content": "How is Vigo?"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture(scope="module")
def served():
    def answer(request):
        prompt = request.prompt.text()
        if "weather" not in prompt or "<|start|>tool" in prompt:
            return THOUGHT + HELLO
        return THOUGHT + call("weather", city="Vigo")

    with running(answer) as server:
        yield server


@pytest.fixture(scope="module")
def chat(served):
    with openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as client:
        yield client.chat.completions


@pytest.fixture(scope="module")
def messages(served):
    with anthropic.Anthropic(base_url=served.root, api_key="none", max_retries=0) as client:
        yield client.messages


def test_a_chat_goes_through_a_call_and_its_answer(chat):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    first = chat.create(model=MODEL, messages=USER, tools=tools).choices[0]
    assert first.finish_reason == "tool_calls"
    (made,) = first.message.tool_calls
    assert (made.function.name, made.function.arguments) == ("weather", '{"city": "Vigo"}')
    result = {"role": "tool", "tool_call_id": made.id, "content": "wet"}
    said = [*USER, first.message.model_dump(exclude_none=True), result]
    second = chat.create(model=MODEL, messages=said, tools=tools).choices[0]
    assert (second.finish_reason, second.message.content) == ("stop", "Hello there.")


def test_a_chat_stream_has_one_id_and_ends_with_done(served, chat):
    options = {"include_usage": True}
    chunks = list(chat.create(model=MODEL, messages=USER, stream=True, stream_options=options))
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0
    body = {"model": MODEL, "messages": USER, "stream": True}
    raw = served.http.post("/v1/chat/completions", json=body).content
    assert raw.endswith(b"data: [DONE]\n\n")
    assert raw.count(b"[DONE]") == 1


@pytest.mark.parametrize(
    ("chosen", "keys"),
    [
        (None, {"reasoning_content"}),
        ("reasoning_content", {"reasoning_content"}),
        ("reasoning", {"reasoning"}),
        ("both", {"reasoning_content", "reasoning"}),
    ],
)
def test_the_reasoning_of_a_chat_stands_under_the_key_that_is_chosen(chosen, keys):
    settings = {} if chosen is None else {"chat_reasoning": chosen}
    body = {"model": MODEL, "messages": USER}
    with running(lambda request: THOUGHT + HELLO, **settings) as server:
        whole = server.http.post("/v1/chat/completions", json=body).json()
        raw = server.http.post("/v1/chat/completions", json={**body, "stream": True}).text
    lines = [line.removeprefix("data: ") for line in raw.split("\n\n") if line]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines if line != "[DONE]"]
    streamed = {key for delta in deltas for key in delta if "reasoning" in key}
    message = whole["choices"][0]["message"]
    assert {key for key in message if "reasoning" in key} == streamed == keys
    for key in keys:
        assert "".join(delta.get(key, "") for delta in deltas) == message[key] != ""


def test_a_message_goes_through_a_call_and_its_answer(messages):
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    first = messages.create(model=MODEL, max_tokens=500, messages=USER, tools=tools)
    assert first.stop_reason == "tool_use"
    made = first.content[-1]
    assert (made.name, made.input) == ("weather", {"city": "Vigo"})
    result = {"type": "tool_result", "tool_use_id": made.id, "content": "wet"}
    turn = {"role": "assistant", "content": [block.model_dump() for block in first.content]}
    said = [*USER, turn, {"role": "user", "content": [result]}]
    with messages.stream(model=MODEL, max_tokens=500, messages=said, tools=tools) as stream:
        second = stream.get_final_message()
    assert second.stop_reason == "end_turn"
    assert second.content[-1].text == "Hello there."


@pytest.mark.parametrize("stream", [False, True])
def test_a_message_says_which_stop_sequence_ended_it(messages, stream):
    asked = {"model": MODEL, "max_tokens": 500, "messages": USER, "stop_sequences": ["the", "xyz"]}
    if stream:
        with messages.stream(**asked) as read:
            made = read.get_final_message()
    else:
        made = messages.create(**asked)
    assert (made.stop_reason, made.stop_sequence) == ("stop_sequence", "the")
    assert made.content[-1].text == "Hello "


def test_tokens_are_counted_as_they_are_then_used(messages):
    count = messages.count_tokens(model=MODEL, messages=USER).input_tokens
    assert count == messages.create(model=MODEL, max_tokens=500, messages=USER).usage.input_tokens


def test_neither_of_them_stores_anything(served, chat, messages):
    before = served.call(served.service.store.size)
    chat.create(model=MODEL, messages=USER)
    messages.create(model=MODEL, max_tokens=500, messages=USER)
    assert served.call(served.service.store.size) == before


def test_what_is_wrong_is_told_in_the_words_of_each_api(served):
    chat = served.http.post(
        "/v1/chat/completions", json={"model": MODEL, "messages": [{"role": "x"}]}
    )
    assert chat.status_code == 400
    assert chat.json()["error"]["param"].startswith("messages")
    message = served.http.post("/v1/messages", json={"model": MODEL, "messages": USER})
    assert message.status_code == 400
    assert "max_tokens" in message.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "end"),
    [("/v1/chat/completions", b"data: [DONE]\n\n"), ("/v1/messages", b"}}\n\n")],
)
def test_an_engine_that_breaks_off_is_an_error_in_the_stream_and_a_500_without(path, end):
    body = {"model": MODEL, "messages": USER, "max_tokens": 5000}
    with running(Broken(EngineError("gone"))) as server:
        raw = server.http.post(path, json={**body, "stream": True}).content
        whole = server.http.post(path, json=body)
    assert b'"error"' in raw
    assert raw.endswith(end)
    assert whole.status_code == 500


def test_an_input_that_is_too_long_is_refused_before_anything_is_sent():
    said = [{"role": "user", "content": "word " * 2000}]
    with running(ScriptedEngine(lambda request: HELLO, context=300)) as server:
        for path in ("/v1/chat/completions", "/v1/messages"):
            body = {"model": MODEL, "messages": said, "max_tokens": 50, "stream": True}
            answered = server.http.post(path, json=body)
            assert answered.status_code == 400
