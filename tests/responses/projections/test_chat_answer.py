"""Chunks and completions, from what the model wrote; OpenAI's own types and accumulator judge them."""

from __future__ import annotations

import copy

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from atem.responses.chat import ChatStream, completion, from_chat, wants_usage
from atem.responses.faults import ApiError
from tests.responses.projections.told import (
    CHAT_TOOLS,
    DONE,
    SAID,
    THOUGHT,
    built,
    call,
    replied,
    turn,
)

ASKED = {"model": "muse", "messages": [{"role": "user", "content": "Rain?"}], "tools": CHAT_TOOLS}


def reply(text, **more):
    return replied(text, from_chat({**ASKED, **more}))


def chunks(told, **options):
    stream = ChatStream(**options)
    return [chunk for event in told.events for chunk in stream.feed(event)]


def deltas(told, **options):
    found = [c["choices"][0]["delta"] for c in chunks(told, **options) if c.get("choices")]
    return [delta for delta in found if delta]


def accumulated(made):
    """What OpenAI's client makes of a stream, less what it adds of its own."""
    state = ChatCompletionStreamState()
    for chunk in made:
        list(state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True)))
    return state.current_completion_snapshot  # the final one refuses a turn that was cut


def plain(message):
    """A message without what only one of stream and object has."""
    fields = message.model_dump(exclude={"parsed", "annotations"}, exclude_none=True)
    for made in fields.get("tool_calls", ()):
        made.pop("index", None)
        made["function"].pop("parsed_arguments", None)
    return {key: value for key, value in fields.items() if value not in ("", [])}


def test_a_turn_with_everything_is_these_deltas():
    told = reply(turn(THOUGHT, SAID, call(city="Oslo", days=2)))
    joined = "".join(d.get("reasoning_content", "") for d in deltas(told))
    assert joined == "Look it up."
    assert "".join(d.get("content") or "" for d in deltas(told)) == "One moment."
    assert deltas(told)[0] == {"role": "assistant", "content": "", "refusal": None}
    opening, rest = (d["tool_calls"][0] for d in deltas(told)[-2:])
    call_id = told.response["output"][-1]["call_id"]
    empty = {"name": "weather", "arguments": ""}
    assert opening == {"index": 0, "id": call_id, "type": "function", "function": empty}
    assert rest == {"index": 0, "function": {"arguments": '{"city": "Oslo", "days": 2}'}}
    assert chunks(told)[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_turn_with_everything_is_this_completion():
    told = reply(turn(THOUGHT, SAID, call(city="Oslo", days=2)))
    made = completion(told.response)
    function = {"name": "weather", "arguments": '{"city": "Oslo", "days": 2}'}
    call_id = told.response["output"][-1]["call_id"]
    assert made["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "One moment.",
                "refusal": None,
                "annotations": [],
                "reasoning_content": "Look it up.",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ]
    assert made["object"] == "chat.completion"
    assert (made["created"], made["model"]) == (1000, "muse")


TURNS = {
    "answer": DONE,
    "thought": turn(THOUGHT, DONE, end=""),
    "call": turn(call(city="Oslo")),
    "two calls": turn(THOUGHT, SAID, call(city="Oslo"), call(city="Bergen", days=3)),
    "two thoughts": turn(THOUGHT, THOUGHT, DONE, end=""),
    "two texts": turn(SAID, DONE, end=""),
    "rejected": turn(call("launch", x=1)),
    "cut text": turn(THOUGHT, SAID, end=""),
    "cut call": turn(SAID, call(city="Oslo"), call(city="Ber")[:-40], end=""),
}


@pytest.mark.parametrize("name", TURNS)
def test_openais_accumulator_makes_the_completion_of_the_chunks(name):
    told = reply(TURNS[name])
    streamed = accumulated(chunks(told, include_usage=True))
    whole = ChatCompletion.model_validate(completion(told.response), strict=True)
    assert plain(streamed.choices[0].message) == plain(whole.choices[0].message)
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason
    for key in ("id", "created", "model", "usage", "service_tier"):
        assert getattr(streamed, key) == getattr(whole, key)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("answer", "stop"),
        ("call", "tool_calls"),
        ("rejected", "stop"),
        ("cut text", "length"),
        ("cut call", "length"),
    ],
)
def test_the_finish_reason_is_how_the_response_ended(name, reason):
    told = reply(TURNS[name])
    assert completion(told.response)["choices"][0]["finish_reason"] == reason


def test_what_a_filter_stopped_says_so():
    response = built(DONE, []).response | {
        "status": "incomplete",
        "incomplete_details": {"reason": "content_filter"},
    }
    assert completion(response)["choices"][0]["finish_reason"] == "content_filter"


def test_a_rejected_call_is_text_and_no_call():
    message = completion(reply(TURNS["rejected"]).response)["choices"][0]["message"]
    assert "launch" in message["content"]
    assert "tool_calls" not in message


def test_a_call_that_was_shown_and_taken_back_is_in_no_chunk():
    text = turn(call(city="Oslo", days=2)[:-60], end="")
    told = built(text, CHAT_TOOLS, "length", arguments="stream")
    assert any(item["type"] == "function_call" for item in told.response["output"])
    assert not any("tool_calls" in delta for delta in deltas(told))
    assert "tool_calls" not in completion(told.response)["choices"][0]["message"]


def test_two_messages_of_one_turn_are_a_paragraph_each():
    message = completion(reply(TURNS["two texts"]).response)["choices"][0]["message"]
    assert message["content"] == "One moment.\n\nIt is so."


def test_two_thoughts_are_a_line_each():
    message = completion(reply(TURNS["two thoughts"]).response)["choices"][0]["message"]
    assert message["reasoning_content"] == "Look it up.\nLook it up."


def test_reasoning_stands_under_every_name_that_is_asked_for():
    told = reply(TURNS["thought"])
    names = ("reasoning_content", "reasoning")
    message = completion(told.response, reasoning=names)["choices"][0]["message"]
    assert {message[name] for name in names} == {"Look it up."}
    thoughts = [d for d in deltas(told, reasoning=names) if "reasoning" in d]
    assert thoughts
    assert all(d["reasoning"] == d["reasoning_content"] for d in thoughts)


def test_a_turn_without_an_answer_has_null_as_its_content():
    message = completion(reply(turn(call(city="Oslo"))).response)["choices"][0]["message"]
    assert message["content"] is None


def test_usage_comes_in_a_last_chunk_without_choices_and_only_when_asked_for():
    asked = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
    told = replied(DONE, from_chat(asked))
    made = chunks(told, include_usage=wants_usage(asked))
    assert made[-1]["choices"] == []
    assert made[-1]["usage"] == completion(told.response)["usage"]
    assert [chunk["usage"] for chunk in made[:-1]] == [None] * (len(made) - 1)
    assert not wants_usage(ASKED)
    assert all("usage" not in chunk for chunk in chunks(told))


def test_usage_counts_all_tokens_and_names_cached_and_reasoning_ones():
    used = completion(built(turn(THOUGHT, DONE, end=""), []).response)["usage"]
    assert used["prompt_tokens"] + used["completion_tokens"] == used["total_tokens"] == 29
    assert used["prompt_tokens_details"] == {"cached_tokens": 5}


def test_reasoning_tokens_are_counted():
    used = completion(reply(TURNS["thought"]).response)["usage"]
    assert 0 < used["completion_tokens_details"]["reasoning_tokens"] < used["completion_tokens"]


def test_logprobs_are_those_of_the_answers_tokens():
    told = reply(TURNS["thought"], logprobs=True, top_logprobs=2)
    whole = ChatCompletion.model_validate(completion(told.response), strict=True)
    streamed = accumulated(chunks(told))
    content = whole.choices[0].logprobs.content
    assert "".join(entry.token for entry in content) == "It is so."
    assert all(len(entry.top_logprobs) == 2 for entry in content)
    assert streamed.choices[0].logprobs == whole.choices[0].logprobs


def test_logprobs_are_null_when_nobody_asked():
    assert completion(reply(DONE).response)["choices"][0]["logprobs"] is None


def test_a_custom_tool_call_carries_its_input():
    tool = {"type": "custom", "custom": {"name": "patch", "description": "Apply a patch."}}
    told = reply(turn(call("patch", input="a\nb")), tools=[tool])
    (made,) = completion(told.response)["choices"][0]["message"]["tool_calls"]
    assert (made["type"], made["custom"]) == ("custom", {"name": "patch", "input": "a\nb"})
    pieces = [part for d in deltas(told) for part in d.get("tool_calls", ())]
    assert [part["index"] for part in pieces] == [0, 0]
    assert "".join(part["custom"]["input"] for part in pieces) == "a\nb"


def test_a_namespace_and_a_name_are_one_dotted_name():
    space = {"type": "namespace", "name": "maps", "description": "", "tools": CHAT_TOOLS}
    told = reply(turn(call("maps.weather", city="Oslo")), tools=[space])
    (made,) = completion(told.response)["choices"][0]["message"]["tool_calls"]
    assert made["function"]["name"] == "maps.weather"


FAILURES = [
    ("server_error", 500, "server_error"),
    ("rate_limit_exceeded", 429, "rate_limit_error"),
    ("invalid_prompt", 400, "invalid_request_error"),
    ("context_length_exceeded", 400, "invalid_request_error"),
    ("server_is_overloaded", 503, "server_error"),
]


def failed(code, text="It broke."):
    told = built(DONE, [])
    response = told.response | {"status": "failed", "error": {"code": code, "message": text}}
    return told.events[:-1], {"type": "response.failed", "response": response}


@pytest.mark.parametrize(("code", "status", "kind"), FAILURES)
def test_a_failed_response_is_an_error_and_no_completion(code, status, kind):
    _, end = failed(code)
    with pytest.raises(ApiError, match="It broke") as caught:
        completion(end["response"])
    assert (caught.value.status, caught.value.type, caught.value.code) == (status, kind, code)


def test_a_stream_that_fails_ends_in_an_error_and_in_no_finish_reason():
    before, end = failed("server_error")
    stream = ChatStream(include_usage=True)
    made = [chunk for event in before for chunk in stream.feed(event)]
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in made)
    error = {"message": "It broke.", "type": "server_error", "param": None, "code": "server_error"}
    assert stream.feed(end) == [{"error": error}]


def test_a_cancelled_response_is_no_completion():
    response = built(DONE, []).response | {"status": "cancelled"}
    with pytest.raises(ApiError, match="cancelled"):
        completion(response)
    (error,) = ChatStream().feed({"type": "response.incomplete", "response": response})
    assert set(error) == {"error"}


@pytest.mark.parametrize("beat", ["response.in_progress", "keepalive"])
def test_a_heartbeat_is_a_chunk_that_changes_nothing(beat):
    told = reply(TURNS["two calls"])
    stream, made = ChatStream(), []
    for event in told.events:
        made += stream.feed(event)
        if event["type"] not in ("response.created", told.events[-1]["type"]):
            made += (beats := stream.feed({"type": beat, "response": told.events[0]["response"]}))
            assert [chunk["choices"][0]["delta"] for chunk in beats] == [{}]
    assert accumulated(made) == accumulated(chunks(told))


def test_a_keepalive_before_the_first_chunk_is_none():
    assert ChatStream().feed({"type": "keepalive"}) == []


def test_another_name_of_the_model_is_used_when_given():
    told = reply(DONE)
    assert {chunk["model"] for chunk in chunks(told, model="alias")} == {"alias"}
    assert completion(told.response, model="alias")["model"] == "alias"


def test_events_and_responses_are_left_as_they_are():
    told = reply(TURNS["two calls"])
    before = copy.deepcopy(told)
    chunks(told)
    completion(told.response)
    assert told == before
