"""A turn: its fields, its messages, and its forms in other APIs."""

from __future__ import annotations

import json

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from pydantic import TypeAdapter

import atem
from atem import ContentDelta, Message, MessageEnd, MessageStart
from tests.parser.spelling import (
    EOM,
    HALF,
    REPEATED,
    START,
    TOOLS,
    block,
    call,
    calls,
    codes,
    events,
    invoke,
    read,
    to,
    turn,
    verdicts,
)
from tests.parser.strategies import STRING, tool

FULL = turn(
    to("self", "Two things."),
    call("save", path="p", body="5"),
    to("commentary", "Saved. "),
    to("self", "Now count."),
    to("count", block(invoke("count", n="3"), invoke("launch"))),
    to("user", "Done."),
)

# ---- Fields ---------------------------------------------------------------------------------------


def test_a_turn_holds_everything_by_kind_and_everything_in_order():
    found = read(FULL)
    assert (found.reasoning, found.content) == ("Two things.\nNow count.", "Saved. Done.")
    assert calls(found) == [("save", {"path": "p", "body": "5"}), ("count", {"n": 3})]
    assert (verdicts(found), codes(found)) == (["unknown_tool"], [])
    assert (found.complete, found.finish_reason, found.empty) == (True, "tool_calls", False)
    assert [(m.role, m.recipient, m.content) for m in found.messages] == [
        ("assistant", "self", "Two things."),
        ("assistant", "save", ""),
        ("assistant", "commentary", "Saved. "),
        ("assistant", "self", "Now count."),
        ("assistant", "count", ""),
        ("assistant", "user", "Done."),
    ]


def test_a_tool_message_holds_its_calls_and_rejections_in_order():
    text = turn(call("ping"), to("ping", block(invoke("launch"), invoke("ping"), invoke("land"))))
    found = read(text)
    assert [[getattr(one, "raw_name", None) for one in m.calls] for m in found.messages] == [
        ["ping"],
        ["launch", "ping", "land"],
    ]
    assert found.messages[1].calls[1] is found.calls[1]
    assert [one.raw_name for one in found.rejected] == ["launch", "land"]


def test_a_call_knows_its_place_its_names_and_its_text():
    text = turn(call("ping"), to("mail", block(invoke("mail.mail.send", body="潮"))))
    one = read(text).calls[1]
    assert (one.index, one.name, one.raw_name, one.recipient) == (
        1,
        "mail.send",
        "mail.mail.send",
        "mail",
    )
    assert (one.namespace, one.errors) == (None, ())
    assert one.arguments_json == '{"body": "潮"}'


def test_arguments_json_is_what_json_writes_of_the_arguments():
    values = {"b": "true", "a": '[1, {"k": null}]', "n": "1.50", "s": 'é"\\\n'}
    found = read(turn(call("t", **values)), tools=[tool("t")])
    [one] = found.calls
    assert one.arguments == {"b": True, "a": [1, {"k": None}], "n": 1.5, "s": 'é"\\\n'}
    assert one.arguments_json == json.dumps(one.arguments, ensure_ascii=False)
    assert list(one.arguments) == list(values)


def test_a_rejected_call_says_why_and_what_is_nearest():
    [rejected] = read(turn(call("cuont", n="3"))).rejected
    assert (rejected.reason, rejected.raw_name, rejected.arguments) == (
        "unknown_tool",
        "cuont",
        {"n": 3},
    )
    assert rejected.suggestions[0] == "count"
    assert rejected.errors == ()


def test_the_spans_of_calls_and_rejections_are_where_they_stand():
    text = turn(call("ping"), to("save", block(invoke("save", body="b"), invoke("launch"))))
    found = read(text)
    for one, name in [
        *zip(found.calls, ["ping", "save"], strict=True),
        (found.rejected[0], "launch"),
    ]:
        start, end = one.span
        assert f'name="{name}"' in text[start:end]
        assert text[start:end].count("<atem:invoke ") == 1


def test_two_readings_of_a_text_are_equal_and_of_two_texts_are_not():
    assert read(turn(call("ping"))) == read(turn(call("ping")))
    assert read(turn(call("save", body="a"))) != read(turn(call("save", body="b")))


def test_a_turn_is_frozen():
    with pytest.raises(AttributeError):
        read("Hi.").content = ""


# ---- finish_reason, complete, empty ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason", "finish", "complete"),
    [
        ("", "stop", "stop", True),
        (turn(to("user", "Hi.")), "stop", "stop", True),
        (to("user", "Hi."), "stop", "stop", True),
        (to("user", "Hi."), "length", "length", False),
        (turn(call("ping")), "stop", "tool_calls", True),
        (turn(call("ping")), "length", "length", False),
        (turn(call("ping"), to("user", "Hi.")), "stop", "tool_calls", True),
        (turn(call("launch")), "stop", "stop", True),
        (turn(HALF, call("ping")), "stop", "tool_calls", True),
        (HALF, "stop", "length", False),
        (call("ping").removesuffix(">"), "stop", "length", False),
        (to("user", "Hi.") + EOM + START, "stop", "length", False),
        (turn(to("self", "Hm.")), "stop", "stop", True),
    ],
)
def test_the_finish_reason_is_length_only_if_the_turn_is_not_complete(
    text, reason, finish, complete
):
    found = read(text, reason=reason)
    assert (found.finish_reason, found.complete) == (finish, complete)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("", True),
        (turn(to("self", "Hm.")), True),
        (turn(to("self", " ")), True),
        (turn(to("user", "")), True),
        (turn(to("user", "Hi.")), False),
        (turn(call("ping")), False),
        (turn(call("launch")), False),
        (turn(to("self", "Hm."), to("commentary", "Wait.")), False),
    ],
)
def test_a_turn_is_empty_if_there_is_only_reasoning_or_nothing(text, empty):
    assert read(text).empty is empty


# ---- collect --------------------------------------------------------------------------------------


def test_collecting_the_events_gives_the_turn():
    assert atem.collect(events(FULL)) == atem.parse(FULL, tools=TOOLS)
    assert atem.collect(iter(events(FULL))) == atem.parse(FULL, tools=TOOLS)


def test_collect_forgets_a_call_that_was_taken_back():
    found = atem.collect(events(turn(to("save", block(REPEATED)))))
    assert (calls(found), found.rejected) == ([("save", {"body": "2", "path": "p"})], ())
    assert len(found.messages[0].calls) == 1


def test_events_without_their_end_are_a_cut_turn():
    [*without, _] = events(FULL)
    found = atem.collect(without)
    assert (found.complete, found.finish_reason) == (False, "length")
    assert found.content == "Saved. Done."


def test_a_provisional_call_is_not_in_a_turn():
    found = atem.collect(events(call("ping"))[:3])
    assert (found.calls, found.rejected) == ((), ())


def test_events_outside_a_message_open_one_so_that_a_filtered_stream_has_a_turn():
    lone = atem.collect([ContentDelta("a", 0, 1)])
    assert (lone.content, lone.messages) == ("a", (Message("assistant", "a"),))

    kept = [e for e in events(FULL) if not isinstance(e, MessageStart | MessageEnd)]
    found, whole = atem.collect(kept), read(FULL)
    assert (found.reasoning, found.content) == (whole.reasoning, whole.content)
    assert (found.calls, found.rejected) == (whole.calls, whole.rejected)
    thoughts = [m.content for m in found.messages if m.recipient == "self"]
    assert thoughts == ["Two things.", "Now count."]
    assert {m.recipient for m in found.messages} == {"self", None}

    unopened = [MessageStart("self"), MessageEnd(None, None), ContentDelta("a", 0, 1)]
    assert [m.recipient for m in atem.collect(unopened).messages] == ["self", None]


# ---- Chat Completions -------------------------------------------------------------------------------


def test_a_chat_message_has_reasoning_content_and_calls():
    message = read(FULL).to_chat_message()
    assert message["role"] == "assistant"
    assert message["reasoning_content"] == "Two things.\nNow count."
    assert message["content"] == "Saved. Done."
    assert [one["function"] for one in message["tool_calls"]] == [
        {"name": "save", "arguments": '{"path": "p", "body": "5"}'},
        {"name": "count", "arguments": '{"n": 3}'},
    ]


@pytest.mark.parametrize("text", [FULL, turn(call("ping")), turn(to("self", "Hm.")), "", "Hi."])
def test_a_chat_message_is_one_to_the_official_client(text):
    found = read(text)
    message = ChatCompletionMessage.model_validate(found.to_chat_message())
    assert (message.content or "") == found.content
    assert [one.id for one in message.tool_calls or ()] == [one.id for one in found.calls]


def test_a_chat_message_names_a_tool_in_a_namespace_as_the_model_does():
    member = {"type": "function", "name": "post", "parameters": {"type": "object"}}
    tools = [{"type": "namespace", "name": "ledger", "tools": [member]}]
    [one] = read(turn(call("ledger.post")), tools=tools).to_chat_message()["tool_calls"]
    assert one["function"]["name"] == "ledger.post"


def test_a_chat_message_can_be_rendered_again():
    found = read(turn(to("self", "Hm."), to("user", "Wait."), call("save", path="p", body="5")))
    messages = atem.from_chat([found.to_chat_message()])
    assert atem.parse(atem.render_turn(messages).text(), tools=TOOLS).messages == found.messages


def test_a_rejected_call_is_in_no_chat_message():
    assert "tool_calls" not in read(turn(call("launch"))).to_chat_message()


# ---- Responses --------------------------------------------------------------------------------------

ITEMS = {
    "reasoning": ResponseReasoningItem,
    "message": ResponseOutputMessage,
    "function_call": ResponseFunctionToolCall,
}
KINDS = [
    turn(to("self", "Hm.")),
    turn(to("user", "Hi.")),
    turn(call("save", body="x")),
    FULL,
    "",
]


def test_the_items_of_a_turn_stand_in_the_order_of_the_model():
    items = read(FULL).to_response_items()
    assert [item["type"] for item in items] == [
        "reasoning",
        "function_call",
        "message",
        "reasoning",
        "function_call",
        "message",
    ]
    assert [item["arguments"] for item in items if item["type"] == "function_call"] == [
        '{"path": "p", "body": "5"}',
        '{"n": 3}',
    ]


@pytest.mark.parametrize(
    "text", KINDS, ids=["reasoning", "message", "function_call", "all", "none"]
)
def test_the_items_of_a_turn_are_output_items_to_the_official_client(text):
    for item in read(text).to_response_items():
        ITEMS[item["type"]].model_validate(item)
        found = TypeAdapter(ResponseOutputItem).validate_python(item)
        assert type(found) is ITEMS[item["type"]]


def test_the_items_hold_the_texts_and_the_calls_of_the_turn():
    found = read(FULL)
    items = found.to_response_items()
    texts = {
        kind: [part["text"] for item in items if item["type"] == kind for part in item["content"]]
        for kind in ("reasoning", "message")
    }
    assert texts == {"reasoning": ["Two things.", "Now count."], "message": ["Saved. ", "Done."]}
    called = [item for item in items if item["type"] == "function_call"]
    assert [item["call_id"] for item in called] == [one.id for one in found.calls]
    assert [item["name"] for item in called] == ["save", "count"]


def test_a_namespace_is_a_field_of_its_own_in_an_item():
    member = {"type": "function", "name": "post", "parameters": {"type": "object"}}
    tools = [{"type": "namespace", "name": "ledger", "tools": [member]}]
    [item] = read(turn(call("ledger.post")), tools=tools).to_response_items()
    assert (item["namespace"], item["name"]) == ("ledger", "post")
    assert ResponseFunctionToolCall.model_validate(item).namespace == "ledger"


def test_neither_a_rejected_call_nor_an_empty_message_is_an_item():
    text = turn(to("self", ""), call("launch"), HALF, to("user", ""))
    assert read(text).to_response_items() == []


def test_the_items_of_a_turn_can_be_rendered_again():
    found = read(turn(to("self", "Hm."), to("user", "Wait."), call("save", path="p", body="5")))
    messages = atem.from_items(found.to_response_items())
    assert atem.parse(atem.render_turn(messages).text(), tools=TOOLS).messages == found.messages


def test_a_turn_that_was_rendered_reads_as_itself():
    tools = [*TOOLS, tool("launch", site=STRING)]
    found = read(FULL, tools=tools)
    assert atem.parse(atem.render_turn(found).text(), tools=tools) == found
    assert atem.render_turn(found).text() == FULL
