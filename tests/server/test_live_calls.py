"""Calls that are shown while they are written, as clients of all three APIs see them."""

from __future__ import annotations

import json

import pytest

from tests.server.running import MODEL, call, running

PATH = {"type": "object", "properties": {"path": {"type": "string", "maxLength": 6}}}
STRICT = {**PATH, "required": ["path"], "additionalProperties": False}
READ = {"type": "function", "name": "read", "parameters": PATH, "strict": False}
WHOLE = call("read", path="a long name")
CUT = WHOLE[: WHOLE.index(" name<")]
USER = [{"role": "user", "content": "Hi"}]

TAKEN_BACK = {
    "cut": (CUT, READ),
    "unfit": (WHOLE, {**READ, "strict": True, "parameters": STRICT}),
}
"""What is written of a call that is then not passed on, and the tool."""


def told(text, tool, **settings):
    with running(lambda request: text, **settings) as server:
        return server.events(tools=[tool])


def added(events):
    kind = "response.output_item.added"
    return [event["item"]["type"] for event in events if event["type"] == kind]


@pytest.mark.parametrize(("text", "tool"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_a_call_that_was_shown_and_taken_back_is_closed_as_incomplete_and_a_message_says_so(
    text, tool
):
    events = told(text, tool, arguments="stream")
    shown, said = events[-1]["response"]["output"]
    closed, _ = (e["item"] for e in events if e["type"] == "response.output_item.done")
    assert added(events) == ["function_call", "message"]
    assert closed == shown
    assert (shown["type"], shown["status"]) == ("function_call", "incomplete")
    assert shown["arguments"].startswith('{"path": "a lo')
    with pytest.raises(json.JSONDecodeError):
        json.loads(shown["arguments"])
    assert "The call was not passed on" in said["content"][0]["text"]


@pytest.mark.parametrize(("text", "tool"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_unasked_such_a_call_is_never_shown(text, tool):
    assert added(told(text, tool)) == ["message"]


def test_a_call_that_stands_is_completed_with_all_of_its_arguments():
    events = told(WHOLE, READ, arguments="stream")
    (item,) = events[-1]["response"]["output"]
    deltas = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert item["status"] == "completed"
    assert json.loads("".join(deltas)) == json.loads(item["arguments"]) == {"path": "a long name"}


@pytest.mark.parametrize(
    ("path", "body", "block"),
    [
        ("chat/completions", {"tools": [{"type": "function", "function": READ}]}, b'"tool_calls"'),
        (
            "messages",
            {"max_tokens": 500, "tools": [{"name": "read", "input_schema": PATH}]},
            b'"tool_use"',
        ),
    ],
)
def test_the_other_apis_show_a_call_when_it_is_whole(path, body, block):
    with running([CUT, WHOLE], arguments="stream") as server:
        asked = {"model": MODEL, "messages": USER, "stream": True, **body}
        cut, whole = (server.http.post(f"/v1/{path}", json=asked).content for _ in range(2))
    assert block not in cut
    assert block in whole
