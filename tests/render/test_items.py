"""Responses items: the same prompt as the chat messages that say the same."""

from __future__ import annotations

from typing import Any

import pytest

from atem.errors import RenderError
from atem.messages import ImagePart, Message, TextPart
from atem.render import from_items, render


def message(role: str, text: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return {"type": "message", "role": role, "content": content, **fields}


def function_call(call_id: str, arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": arguments}
    return call | fields


def output(call_id: str, said: Any, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": said}


def test_a_whole_turn_is_the_prompt_of_the_same_chat() -> None:
    items = [
        message("user", "Compare."),
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        function_call("c1", '{"path": "a"}'),
        function_call("c2", '{"path": "b"}'),
        output("c2", "B"),
        output("c1", "A"),
        message("assistant", "Same."),
    ]

    def call(call_id: str, path: str) -> dict[str, Any]:
        return {"id": call_id, "function": {"name": "read", "arguments": {"path": path}}}

    chat = [
        {"role": "user", "content": "Compare."},
        {
            "role": "assistant",
            "reasoning_content": "Hm.",
            "tool_calls": [call("c1", "a"), call("c2", "b")],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "B"},
        {"role": "tool", "tool_call_id": "c1", "content": "A"},
        {"role": "assistant", "content": "Same."},
    ]
    assert render(items) == render(chat)


def test_a_message_needs_no_type() -> None:
    (read,) = from_items([{"role": "user", "content": "x"}])
    assert read == Message("user", "x")


def test_a_preamble_before_a_call_keeps_the_turn_open() -> None:
    text = render([message("assistant", "One moment."), function_call("c1")]).text()
    assert "to=user<|message|>One moment.<|eom|><|start|>assistant to=read" in text


def test_a_namespace_and_a_name_meet_on_the_wire_only() -> None:
    (read,) = from_items([function_call("c1", namespace="mail", name="send.all")])
    (call,) = read.calls
    assert (call.namespace, call.name) == ("mail", "send.all")
    text = render(
        [function_call("c1", namespace="mail", name="send.all"), output("c1", "x")]
    ).text()
    assert (
        'to=mail.send.all<|message|><atem:function_calls>\n<atem:invoke name="mail.send.all">'
        in text
    )
    assert '<tool_output name="mail.send.all">' in text


def test_a_custom_call_has_its_text_in_the_one_parameter() -> None:
    items = [
        {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls\n"},
        output("c1", "files", "custom_tool_call_output"),
    ]
    text = render(items).text()
    assert '<atem:invoke name="run">\n<atem:parameter name="input">ls\n</atem:parameter>' in text
    assert '<tool_output name="run">\nfiles\n' in text


def test_an_output_may_have_parts() -> None:
    parts = [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "u"}]
    read = from_items([function_call("c1"), output("c1", parts)])[-1]
    assert read.content == (TextPart("seen"), ImagePart("u"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": [{"type": "reasoning_text", "text": "c"}], "summary": [{"type": "summary_text", "text": "s"}]}, ["c"]),
        ({"content": None, "summary": [{"type": "summary_text", "text": "s"}]}, ["s"]),
        ({"content": [], "summary": []}, []),
        ({"summary": [], "encrypted_content": "gAAA"}, []),
        ({"summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}, ["a\nb"]),
    ],
)  # fmt: skip
def test_reasoning_is_content_else_summary_else_nothing(
    fields: dict[str, Any], said: list[str]
) -> None:
    read = from_items([{"type": "reasoning", **fields}])
    assert [m.content for m in read] == said
    assert all(m.recipient == "self" for m in read)


def test_leading_instructions_are_one_system_message_and_later_ones_their_own() -> None:
    read = from_items(
        [
            message("developer", "A"),
            message("system", "B"),
            message("user", "u"),
            message("developer", "C"),
        ]
    )
    assert read[0] == Message("system", (TextPart("A"), TextPart("\n\n"), TextPart("B")))
    assert [m.role for m in read] == ["system", "user", "developer"]


def test_a_single_leading_instruction_stays_as_it_is() -> None:
    read = from_items([{"role": "developer", "content": "A"}, {"role": "user", "content": "u"}])
    assert read == (Message("developer", "A"), Message("user", "u"))


def test_an_output_without_its_call_is_refused_with_its_place() -> None:
    with pytest.raises(RenderError, match=r"items\[1\]\.call_id 'c9'"):
        render([message("user", "x"), output("c9", "y")])


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "x"},
        {"type": "web_search_call"},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": None},
        {"no": "type"},
        message("tool", "x"),
        {"type": "function_call", "call_id": "c", "arguments": "{}"},
        {"type": "function_call", "name": "read", "arguments": "{}"},
        function_call("c1", "{"),
        {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
    ],
    ids=str,
)
def test_an_item_that_can_t_be_rendered_is_refused_with_its_place(item: dict[str, Any]) -> None:
    with pytest.raises(RenderError, match=r"items\[0\]"):
        from_items([item])


def test_pydantic_items_of_the_openai_package_are_read() -> None:
    from openai.types.responses import ResponseFunctionToolCall

    item = ResponseFunctionToolCall.model_validate(function_call("c1", '{"path": "a"}'))
    assert render([item]) == render([function_call("c1", '{"path": "a"}')])
