"""Laws of the projections, over drawn turns: the same answer in all three forms, streamed or not."""

from __future__ import annotations

import json

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from atem.responses.anthropic import MessagesStream, from_messages, in_messages, message
from atem.responses.chat import ChatStream, completion, from_chat, in_chat
from atem.responses.faults import ApiError
from atem.responses.request import from_request
from tests.parser.strategies import reasons, soups, turns
from tests.responses.projections.told import BLOBS, built, items

EVENT = TypeAdapter(RawMessageStreamEvent)
HI = {"role": "user", "content": "hi"}

drawn = st.builds(
    lambda turn, reason, arguments: built(*turn, reason, arguments=arguments),
    turns() | soups(),
    reasons,
    st.sampled_from(("whole", "stream")),
)


def chunks(told):
    stream = ChatStream(include_usage=True)
    return [chunk for event in told.events for chunk in stream.feed(event)]


def events(told, **options):
    stream = MessagesStream(**options)
    return [made for event in told.events for made in stream.feed(event)]


def completed_calls(response):
    """``(id, name, arguments)`` of the calls that a client may run."""
    return [
        (item["call_id"], item["name"], json.loads(item["arguments"]))
        for item in items(response, "function_call")
        if item["status"] == "completed"
    ]


def texts(response, kind):
    return ["".join(part["text"] for part in item["content"]) for item in items(response, kind)]


@given(drawn)
def test_a_completion_says_what_the_response_says(told):
    made = completion(told.response)["choices"][0]["message"]
    assert (made["content"] or "") == "\n\n".join(texts(told.response, "message"))
    assert made.get("reasoning_content", "") == "\n".join(texts(told.response, "reasoning"))
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in made.get("tool_calls", ())
    ]
    assert calls == completed_calls(told.response)


@given(drawn)
def test_a_message_says_what_the_response_says_in_its_order(told):
    shown = [
        item
        for item in told.response["output"]
        if item["type"] != "function_call" or item["status"] == "completed"
    ]
    made = message(told.response)["content"]
    kinds = {"message": "text", "reasoning": "thinking", "function_call": "tool_use"}
    assert [block["type"] for block in made] == [kinds[item["type"]] for item in shown]
    said = {"text": [], "thinking": []}
    for block in made:
        if block["type"] in said:
            said[block["type"]].append(block[block["type"]])
    assert said["text"] == texts(told.response, "message")
    assert said["thinking"] == texts(told.response, "reasoning")
    uses = [(b["id"], b["name"], b["input"]) for b in made if b["type"] == "tool_use"]
    assert uses == completed_calls(told.response)


@given(drawn)
def test_openais_accumulator_makes_the_completion_of_the_chunks(told):
    state = ChatCompletionStreamState()
    for chunk in chunks(told):
        list(state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True)))
    streamed = state.current_completion_snapshot
    whole = ChatCompletion.model_validate(completion(told.response), strict=True)
    ours, theirs = (made.choices[0] for made in (whole, streamed))
    assert theirs.finish_reason == ours.finish_reason
    assert (theirs.message.content or "") == (ours.message.content or "")
    assert theirs.message.model_extra.get("reasoning_content") == ours.message.model_extra.get(
        "reasoning_content"
    )
    calls = [
        [(call.id, call.function.name, call.function.arguments) for call in made.tool_calls or ()]
        for made in (ours.message, theirs.message)
    ]
    assert calls[0] == calls[1]
    assert (streamed.id, streamed.usage) == (whole.id, whole.usage)


@given(drawn, st.sampled_from(("shown", "omitted", "hidden")))
def test_anthropics_accumulator_makes_the_message_of_the_events(told, display):
    snapshot, inputs = None, {}
    for event in events(told, display=display):
        if event["type"] != "ping":
            read = EVENT.validate_python(event, strict=True)
            snapshot = accumulate_event(event=read, current_snapshot=snapshot, json_bufs=inputs)
    whole = Message.model_validate(message(told.response, display=display), strict=True)
    assert snapshot.model_dump(exclude_none=True) == whole.model_dump(exclude_none=True)


@given(drawn)
def test_a_stream_of_chunks_starts_with_the_role_and_gives_one_reason_at_its_end(told):
    *made, usage = chunks(told)
    choices = [chunk["choices"][0] for chunk in made]
    assert len({chunk["id"] for chunk in [*made, usage]}) == 1
    assert ["role" in choice["delta"] for choice in choices] == [True] + [False] * (len(made) - 1)
    ended = [choice["finish_reason"] is not None for choice in choices]
    assert ended == [False] * (len(made) - 1) + [True]
    parts = [part for choice in choices for part in choice["delta"].get("tool_calls", ())]
    opened = [part["index"] for part in parts if "id" in part]
    assert opened == list(range(len(opened)))


@given(drawn)
def test_blocks_are_opened_and_closed_one_after_the_other(told):
    first, *middle, last, end = [event for event in events(told) if event["type"] != "ping"]
    kinds = (first["type"], last["type"], end["type"])
    assert kinds == ("message_start", "message_delta", "message_stop")
    framing = [
        (event["index"], event["type"].removeprefix("content_block_"))
        for event in middle
        if event["type"] != "content_block_delta"
    ]
    assert framing == [(n // 2, ("start", "stop")[n % 2]) for n in range(len(framing))]
    assert len(framing) % 2 == 0
    open_now = -1
    for event in middle:
        open_now += event["type"] == "content_block_start"
        assert event["index"] == open_now


@given(turns() | soups(), reasons)
def test_a_message_that_comes_back_is_the_same_history_as_the_items(turn, reason):
    told = built(*turn, reason)
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
        for tool in turn[1]
    ]
    replayed = [HI, {"role": "assistant", "content": message(told.response)["content"]}, HI]
    body = {"model": "muse", "max_tokens": 9, "messages": replayed, "tools": tools}
    ours = from_request(from_messages(body), blobs=BLOBS)
    given_back = [HI, *told.response["output"], HI]
    theirs = from_request({"model": "muse", "input": given_back, "tools": turn[1]}, blobs=BLOBS)
    assert ours.prompt().text() == theirs.prompt().text()


words = st.sampled_from(
    ("role", "user", "assistant", "tool", "system", "type", "text", "content", "messages", "image",
     "tool_use", "tool_result", "thinking", "tool_calls", "function", "custom", "id", "name",
     "arguments", "input", "source", "data", "base64", "image_url", "file", "tools", "document")
)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers(-3, 3) | words | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)
roles = st.sampled_from(("user", "assistant", "system", "tool", "developer"))
talks = st.lists(
    st.fixed_dictionaries({"role": roles, "content": anything}, optional={"tool_calls": anything})
    | anything,
    max_size=4,
)
FIELDS = (
    "tools", "tool_choice", "system", "thinking", "output_config", "output_format", "metadata",
    "stop", "stop_sequences", "response_format", "reasoning", "reasoning_effort", "n", "logprobs",
    "top_logprobs", "max_completion_tokens", "modalities", "stream_options", "verbosity", "audio",
)  # fmt: skip
bodies = st.builds(
    lambda talk, more: {"model": "muse", "max_tokens": 9, "messages": talk, **more},
    talks | anything,
    st.dictionaries(st.sampled_from(FIELDS), anything, max_size=4),
)


def refusal(read, *given):
    """The error that ``read`` raises; None if it raises none."""
    try:
        read(*given)
    except ApiError as error:
        return error
    return None


@given(bodies)
def test_any_json_is_a_request_or_a_refusal_in_the_clients_words(body):
    for translate, told in ((from_chat, in_chat), (from_messages, in_messages)):
        error = refusal(translate, body)
        if error is None:
            error = refusal(from_request, translate(body))
            error = error and told(error, body)
        if error is not None:
            assert 400 <= error.status < 500
            assert not (error.param or "").startswith("input")
