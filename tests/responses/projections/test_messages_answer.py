"""A message and its events, from what the model wrote; Anthropic's own types and accumulator judge."""

from __future__ import annotations

import copy
import json

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from atem.responses.anthropic import MessagesStream, display, error_body, from_messages, message
from atem.responses.faults import ApiError, too_long
from tests.responses.projections.told import (
    BLOBS,
    DONE,
    MESSAGES_TOOLS,
    SAID,
    THOUGHT,
    built,
    call,
    replied,
    turn,
)

ASKED = {
    "model": "muse",
    "max_tokens": 2000,
    "messages": [{"role": "user", "content": "Rain?"}],
    "tools": MESSAGES_TOOLS,
}
DIRECT = {"type": "direct"}
EVENT = TypeAdapter(RawMessageStreamEvent)


def reply(text, **more):
    return replied(text, from_messages({**ASKED, **more}))


def events(told, **options):
    stream = MessagesStream(**options)
    return [made for event in told.events for made in stream.feed(event)]


def accumulated(made):
    """What Anthropic's client makes of a stream."""
    snapshot, inputs = None, {}
    for event in made:
        if event["type"] != "ping":
            read = EVENT.validate_python(event, strict=True)
            snapshot = accumulate_event(event=read, current_snapshot=snapshot, json_bufs=inputs)
    return snapshot


def plain(read):
    return read.model_dump(exclude_none=True)


def test_a_turn_with_everything_is_these_events():
    told = reply(turn(THOUGHT, SAID, call(city="Oslo", days=2)))
    made = events(told)
    kinds = [event["type"].removeprefix("content_block_") for event in made]
    assert [kind for kind in kinds if kind != "delta"] == [
        "message_start",
        "ping",
        *("start", "stop") * 3,
        "message_delta",
        "message_stop",
    ]
    starts = [event["content_block"] for event in made if event["type"] == "content_block_start"]
    call_id = told.response["output"][-1]["call_id"]
    assert starts == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": "", "citations": None},
        {"type": "tool_use", "id": call_id, "name": "weather", "input": {}, "caller": DIRECT},
    ]
    assert {event["index"] for event in made if "index" in event} == {0, 1, 2}


def test_a_turn_with_everything_is_this_message():
    told = reply(turn(THOUGHT, SAID, call(city="Oslo", days=2)))
    made = message(told.response)
    blob, call_id = told.response["output"][0]["encrypted_content"], "call_"
    assert BLOBS.open(blob) == "Look it up."
    thought, text, use = made["content"]
    assert thought == {"type": "thinking", "thinking": "Look it up.", "signature": blob}
    assert text == {"type": "text", "text": "One moment.", "citations": None}
    assert use.pop("id").startswith(call_id)
    assert use.pop("input") == {"city": "Oslo", "days": 2}
    assert use == {"type": "tool_use", "name": "weather", "caller": DIRECT}
    assert (made["stop_reason"], made["stop_sequence"]) == ("tool_use", None)
    assert (made["type"], made["role"], made["model"]) == ("message", "assistant", "muse")


TURNS = {
    "answer": DONE,
    "thought": turn(THOUGHT, DONE, end=""),
    "call": turn(call(city="Oslo")),
    "no arguments": turn(call()),
    "two calls": turn(THOUGHT, SAID, call(city="Oslo"), call(city="Bergen", days=3)),
    "two thoughts": turn(THOUGHT, THOUGHT, DONE, end=""),
    "rejected": turn(call("launch", x=1)),
    "cut text": turn(THOUGHT, SAID, end=""),
    "cut thought": turn(THOUGHT, end=""),
    "cut call": turn(SAID, call(city="Oslo"), call(city="Ber")[:-40], end=""),
}


@pytest.mark.parametrize("shown", ["shown", "omitted", "hidden"])
@pytest.mark.parametrize("name", TURNS)
def test_anthropics_accumulator_makes_the_message_of_the_events(name, shown):
    told = reply(TURNS[name])
    whole = Message.model_validate(message(told.response, display=shown), strict=True)
    assert plain(accumulated(events(told, display=shown))) == plain(whole)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("answer", "end_turn"),
        ("call", "tool_use"),
        ("rejected", "end_turn"),
        ("cut text", "max_tokens"),
        ("cut call", "max_tokens"),
    ],
)
def test_the_stop_reason_is_how_the_response_ended(name, reason):
    told = reply(TURNS[name])
    assert message(told.response)["stop_reason"] == reason


def test_what_a_filter_stopped_is_a_refusal():
    response = built(DONE, []).response | {
        "status": "incomplete",
        "incomplete_details": {"reason": "content_filter"},
    }
    assert message(response)["stop_reason"] == "refusal"


def test_a_string_that_ended_the_text_is_told():
    told = reply(DONE, stop_sequences=["no", "is"])
    made = message(told.response, stop_sequence=told.stopped_by)
    assert [block["text"] for block in made["content"]] == ["It "]
    assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "is")
    stream = MessagesStream()
    stream.stop_sequence = told.stopped_by
    sent = [event for each in told.events for event in stream.feed(each)]
    ending = {"stop_reason": "stop_sequence", "stop_sequence": "is", "stop_details": None}
    assert sent[-2]["delta"] == ending


def test_a_stop_string_that_never_came_ended_nothing():
    told = reply(DONE, stop_sequences=["no"])
    assert message(told.response, stop_sequence=told.stopped_by)["stop_reason"] == "end_turn"


@pytest.mark.parametrize("name", ["call", "cut text"])
def test_a_call_and_a_cut_go_before_a_string_that_ended_the_text(name):
    made = message(reply(TURNS[name]).response, stop_sequence="is")
    assert made["stop_reason"] in ("tool_use", "max_tokens")
    assert made["stop_sequence"] is None


def test_a_rejected_call_is_text_and_no_tool_use():
    (block,) = message(reply(TURNS["rejected"]).response)["content"]
    assert block["type"] == "text"
    assert "launch" in block["text"]


def test_a_call_that_was_shown_and_taken_back_is_in_no_event():
    text = turn(call(city="Oslo", days=2)[:-60], end="")
    told = built(text, [{"type": "function", "name": "weather"}], "length", arguments="stream")
    assert any(item["type"] == "function_call" for item in told.response["output"])
    assert '"tool_use"' not in json.dumps([events(told), message(told.response)])


@pytest.mark.parametrize(
    ("thinking", "shown"),
    [
        (None, "shown"),
        ({"type": "adaptive"}, "shown"),
        ({"type": "enabled", "budget_tokens": 2000}, "shown"),
        ({"type": "adaptive", "display": "summarized"}, "shown"),
        ({"type": "adaptive", "display": "omitted"}, "omitted"),
        ({"type": "disabled"}, "hidden"),
    ],
)
def test_the_client_says_what_it_sees_of_the_reasoning(thinking, shown):
    assert display({**ASKED, "thinking": thinking}) == shown


def test_hidden_reasoning_leaves_no_gap_in_the_indexes():
    made = events(reply(TURNS["two calls"]), display="hidden")
    starts = [event["index"] for event in made if event["type"] == "content_block_start"]
    assert starts == [0, 1, 2]


def test_omitted_reasoning_still_has_its_signature():
    (block, _) = message(reply(TURNS["thought"]).response, display="omitted")["content"]
    assert block["thinking"] == ""
    assert BLOBS.open(block["signature"]) == "Look it up."


def test_what_was_read_from_a_cache_is_no_input():
    made = message(built(DONE, []).response)["usage"]
    assert (made["input_tokens"], made["cache_read_input_tokens"]) == (15, 5)
    assert made["output_tokens"] == 9


def test_thinking_tokens_are_counted():
    made = message(reply(TURNS["thought"]).response)["usage"]
    assert 0 < made["output_tokens_details"]["thinking_tokens"] < made["output_tokens"]


def test_the_length_of_the_prompt_is_told_at_the_start_if_it_is_known():
    told = reply(DONE)
    assert events(told)[0]["message"]["usage"]["input_tokens"] == 0
    assert events(told, input_tokens=7)[0]["message"]["usage"]["input_tokens"] == 7
    known = told.response["usage"]["input_tokens"]
    assert events(told, input_tokens=7)[-2]["usage"]["input_tokens"] == known


@pytest.mark.parametrize("beat", ["response.in_progress", "keepalive"])
def test_a_heartbeat_is_a_ping(beat):
    told = reply(DONE)
    stream = MessagesStream()
    assert stream.feed({"type": beat}) == []
    stream.feed(told.events[0])
    assert stream.feed({"type": beat}) == [{"type": "ping"}]


def test_a_stream_that_fails_ends_in_an_error():
    told = built(DONE, [])
    error = {"code": "server_error", "message": "It broke."}
    response = told.response | {"status": "failed", "error": error}
    stream = MessagesStream()
    for event in told.events[:-1]:
        stream.feed(event)
    made = stream.feed({"type": "response.failed", "response": response})
    assert made == [{"type": "error", "error": {"type": "api_error", "message": "It broke."}}]
    with pytest.raises(ApiError, match="It broke"):
        message(response)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ],
)
def test_the_type_of_an_error_follows_from_its_status(status, kind):
    body = error_body(ApiError("No.", status=status), "req_1")
    assert body == {
        "type": "error",
        "error": {"type": kind, "message": "No."},
        "request_id": "req_1",
    }


def test_an_error_says_where_it_is():
    said = error_body(ApiError("No.", param="tools[0]"))["error"]["message"]
    assert said == "tools[0]: No."
    assert (
        error_body(ApiError("tools[0] is no.", param="tools[0]"))["error"]["message"].count("[")
        == 1
    )


def test_a_prompt_that_is_too_long_is_told_in_the_words_that_clients_look_for():
    assert error_body(too_long(9, 8))["error"]["message"].startswith("prompt is too long")


def test_events_and_responses_are_left_as_they_are():
    told = reply(TURNS["two calls"])
    before = copy.deepcopy(told)
    events(told)
    message(told.response)
    assert told == before
