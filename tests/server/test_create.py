"""POST /v1/responses, in one piece and as a stream, read raw and by the openai SDK."""

from __future__ import annotations

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.server.running import HELLO, MODEL, THOUGHT, call, read_events, running, types

WEATHER = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def served():
    turns = {"think": THOUGHT + HELLO, "call": THOUGHT + call("weather", city="Vigo")}

    def answer(request):
        text = request.prompt.text().rpartition("<|start|>user")[2]
        return next((turn for word, turn in turns.items() if word in text), HELLO)

    with running(answer) as server:
        yield server


@pytest.fixture(scope="module")
def client(served):
    with openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as made:
        yield made


def test_a_response_in_one_piece_is_the_object_with_all_its_keys(served):
    answered = served.create("think")
    assert answered.status_code == 200
    assert answered.headers["content-type"] == "application/json"
    response = answered.json()
    assert response["status"] == "completed"
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["output"][1]["content"][0]["text"] == "Hello there."
    Response.model_validate(response, strict=True)


def test_the_bytes_of_a_stream_are_an_event_line_a_line_of_json_and_an_empty_line(served):
    body = {"model": MODEL, "input": "think", "stream": True}
    with served.http.stream("POST", "/v1/responses", json=body) as answered:
        assert answered.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answered.headers["cache-control"] == "no-cache"
        assert answered.headers["x-accel-buffering"] == "no"
        raw = answered.read()
    assert b"\r" not in raw
    assert raw.endswith(b"}\n\n")
    events = read_events(raw)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types(events)[:2] == ["created", "in_progress"]
    assert types(events)[-1] == "completed"


def test_every_event_is_one_of_the_sdk(served):
    adapter = TypeAdapter(ResponseStreamEvent)
    for event in served.events("call", tools=[WEATHER]):
        adapter.validate_python(event, strict=True)


def test_the_streamed_response_and_the_one_in_one_piece_hold_the_same(served):
    streamed = served.events("call", tools=[WEATHER])[-1]["response"]
    whole = served.create("call", tools=[WEATHER]).json()

    def shape(response):
        drop = ("id", "call_id", "created_at", "completed_at")
        output = [{k: v for k, v in item.items() if k not in drop} for item in response["output"]]
        return {**{k: v for k, v in response.items() if k not in drop}, "output": output}

    assert shape(streamed) == shape(whole)


def test_the_openai_sdk_reads_a_stream_to_its_end(client):
    with client.responses.stream(model=MODEL, input="think") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == "Hello there."
    assert final.usage.output_tokens_details.reasoning_tokens > 0


def test_the_openai_sdk_reads_a_call_and_answers_it(client):
    first = client.responses.create(model=MODEL, input="call", tools=[WEATHER])
    made = first.output[-1]
    assert (made.type, made.name, made.arguments) == (
        "function_call",
        "weather",
        '{"city": "Vigo"}',
    )
    output = {"type": "function_call_output", "call_id": made.call_id, "output": "wet"}
    second = client.responses.create(model=MODEL, previous_response_id=first.id, input=[output])
    assert second.status == "completed"


def test_the_same_without_v1(served):
    answered = served.http.post("/responses", json={"model": MODEL, "input": "Hi"})
    assert answered.json()["status"] == "completed"


def test_what_was_left_out_is_named_in_a_header(served):
    answered = served.create(tools=[{"type": "web_search"}, WEATHER])
    assert answered.headers["x-atem-dropped-tools"] == "web_search"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "asked", [{"prompt_cache_options": {"prewarm": True}}, {"generate": False}]
)
def test_to_prepare_the_cache_is_to_answer_nothing_and_to_say_what_was_read(served, stream, asked):
    whole = served.create("Hi").json()
    if stream:
        events = served.events("Hi", **asked)
        assert types(events) == ["created", "in_progress", "completed"]
        found = events[-1]["response"]
    else:
        found = served.create("Hi", **asked).json()
    assert (found["status"], found["output"]) == ("completed", [])
    assert found["usage"]["input_tokens"] == whole["usage"]["input_tokens"] > 0
    assert found["usage"]["output_tokens"] == 0
    assert found["usage"]["output_tokens_details"]["reasoning_tokens"] == 0
    assert found["usage"]["total_tokens"] == found["usage"]["input_tokens"]
    Response.model_validate(found, strict=True)
