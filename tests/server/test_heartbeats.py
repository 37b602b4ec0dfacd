"""What a silent stream sends: data by default, numbered, and never first."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.server.running import HELLO, MODEL, paced, running, types


def silent(**settings):
    return running(paced(lambda request: HELLO, first=0.5), heartbeat_seconds=0.1, **settings)


def test_c45_c47_the_default_heartbeat_is_a_data_event_after_created_and_numbered():
    with silent() as server:
        events = server.events()
    names = types(events)
    assert names[0] == "created"
    assert names.count("in_progress") >= 3
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert names[-1] == "completed"
    adapter = TypeAdapter(ResponseStreamEvent)
    for event in events:
        adapter.validate_python(event, strict=True)


def test_c48_a_keepalive_is_sent_where_it_was_asked_for():
    with silent(heartbeat="keepalive") as server:
        events = server.events()
    assert types(events).count("in_progress") == 1
    beats = [event for event in events if event["type"] == "keepalive"]
    assert len(beats) >= 2
    assert all(set(beat) == {"type", "sequence_number"} for beat in beats)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize(("kind", "comments"), [("comment", True), ("off", False)])
def test_c48_comments_and_silence_take_no_number(kind, comments):
    with silent(heartbeat=kind) as server:
        body = {"model": MODEL, "input": "Hi", "stream": True}
        with server.http.stream("POST", "/v1/responses", json=body) as answered:
            blocks = answered.read().decode().split("\n\n")[:-1]
    assert any(block.startswith(":") for block in blocks) is comments
    events = [json.loads(block.split("data: ")[1]) for block in blocks if not block.startswith(":")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types(events).count("in_progress") == 1


@pytest.mark.parametrize("kind", ["in_progress", "keepalive", "comment", "off"])
def test_the_openai_sdk_reads_a_stream_with_any_heartbeat(kind):
    with silent(heartbeat=kind) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        with client, client.responses.stream(model=MODEL, input="Hi") as stream:
            assert stream.get_final_response().output_text == "Hello there."


def test_a_request_that_waits_for_its_turn_says_that_it_is_queued():
    engine = paced(lambda request: HELLO, rate=20)
    with running(engine, running=1, heartbeat_seconds=0.1) as server:
        server.create(background=True)
        events = server.events()
    names = types(events)
    assert names[:2] == ["created", "queued"]
    assert names.count("queued") >= 2
    assert names.index("in_progress") > names.index("queued")
    assert events[0]["response"]["status"] == "queued"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_background_response_has_its_heartbeats_in_its_log():
    with silent() as server:
        live = server.events(background=True)
        path = f"/v1/responses/{live[0]['response']['id']}?stream=true"
        replayed = server.http.get(path).text
    assert types(live).count("in_progress") >= 3
    assert replayed.count("event: ") == len(live)


def test_a_silent_chat_stream_sends_chunks_that_say_nothing():
    with silent() as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        with client:
            said = [{"role": "user", "content": "Hi"}]
            chunks = list(client.chat.completions.create(model=MODEL, messages=said, stream=True))
    texts = [chunk.choices[0].delta.content for chunk in chunks]
    assert texts[0] == ""
    assert texts.count(None) >= 3
    assert "".join(text or "" for text in texts) == "Hello there."
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_silent_message_sends_pings():
    with silent() as server:
        client = anthropic.Anthropic(base_url=server.root, api_key="none", max_retries=0)
        body = {
            "model": MODEL,
            "max_tokens": 99,
            "stream": True,
            "messages": [{"role": "user", "content": "Hi"}],
        }
        raw = server.http.post("/v1/messages", json=body).text
        with (
            client,
            client.messages.stream(
                model=MODEL, max_tokens=99, messages=[{"role": "user", "content": "Hi"}]
            ) as stream,
        ):
            assert stream.get_final_text() == "Hello there."
    assert raw.startswith("event: message_start\n")
    assert raw.count("event: ping") >= 3
    assert raw.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
