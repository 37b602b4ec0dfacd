"""Chat messages: what the template loses or refuses is rendered; what can't be is an error."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2.exceptions import TemplateError as JinjaError

from atem.errors import RenderError
from atem.messages import ImagePart, Message, TextPart, VideoPart
from atem.parser.text import Text
from atem.render import from_chat, render
from tests.render import oracle

SYSTEM = {"role": "system", "content": "Be brief."}


def body(*messages: Any) -> str:
    """The prompt behind the system message."""
    text = render([SYSTEM, *messages], add_generation_prompt=False).text()
    return text.partition('"user".<|eot|>')[2]


def called(arguments: Any, **fields: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": arguments}
    made = {"id": "c1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made], **fields}


BLOCK = (
    '<atem:function_calls>\n<atem:invoke name="read">\n'
    '<atem:parameter name="path">a</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
)


def test_arguments_as_json_text_are_decoded() -> None:
    assert body(called('{"path": "a"}')) == body(called({"path": "a"}))
    assert BLOCK in body(called('{"path": "a"}'))
    with pytest.raises((JinjaError, TypeError, AttributeError)):
        oracle.apply(oracle.template(), [called('{"path": "a"}')])


@pytest.mark.parametrize("arguments", ["", None, "{}", {}])
def test_no_arguments_are_an_empty_call(arguments: Any) -> None:
    assert '<atem:invoke name="read">\n</atem:invoke>' in body(called(arguments))


@pytest.mark.parametrize(
    "arguments",
    ["[1]", '"x"', "{", '{"a": NaN}', '{"a": Infinity}', "[" * 100_000, [1], 3],
    ids=lambda arguments: str(arguments)[:12],
)
def test_arguments_that_are_no_json_object_are_refused_with_their_place(arguments: Any) -> None:
    with pytest.raises(RenderError, match=r"messages\[1\]\.tool_calls\[0\]\.function\.arguments"):
        render([SYSTEM, called(arguments)])


def test_content_beside_calls_is_a_message_before_them() -> None:
    message = called({"path": "a"}, content="Let me look.")
    assert body(message) == (
        "<|start|>assistant to=user<|message|>Let me look.<|eom|>"
        f"<|start|>assistant to=read<|message|>{BLOCK}<|eot|>"
    )
    assert "Let me look." not in oracle.apply(oracle.template(), [message], current_date="x")


@pytest.mark.parametrize("content", ["", None, [], [{"type": "text", "text": ""}]])
def test_empty_content_beside_calls_is_no_message(content: Any) -> None:
    assert "to=user" not in body(called({}, content=content))


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_read_under_each_of_its_names(key: str) -> None:
    text = body({"role": "assistant", "content": "Yes.", key: "Hm."})
    assert text == (
        "<|start|>assistant to=self<|message|>Hm.<|eom|>"
        "<|start|>assistant to=user<|message|>Yes.<|eot|>"
    )


def test_the_same_reasoning_under_two_names_is_written_once_and_different_is_refused() -> None:
    message = {"role": "assistant", "content": "", "reasoning": "Hm.", "reasoning_content": "Hm."}
    assert body(message).count("Hm.") == 1
    with pytest.raises(RenderError, match="reasoning_content and reasoning"):
        body(message | {"reasoning": "Ha."})


def test_a_developer_message_is_a_system_message() -> None:
    developer = render([{"role": "developer", "content": "Be brief."}]).text()
    assert developer == render([SYSTEM]).text()


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ("t", TextPart("t")),
        (Text("t"), TextPart("t")),
        ({"type": "text", "text": "t"}, TextPart("t")),
        ({"type": "input_text", "text": "t"}, TextPart("t")),
        ({"type": "output_text", "text": "t", "annotations": []}, TextPart("t")),
        ({"type": "refusal", "refusal": "no"}, TextPart("no")),
        ({"type": "image"}, ImagePart(None)),
        ({"type": "image", "image": b"png"}, ImagePart(b"png")),
        ({"type": "image_url", "image_url": {"url": "u"}}, ImagePart({"url": "u"})),
        ({"type": "input_image", "image_url": "u"}, ImagePart("u")),
        (
            {"type": "input_image", "image_url": "u", "detail": "low"},
            ImagePart({"image_url": "u", "detail": "low"}),
        ),
        ({"type": "video", "video": "v"}, VideoPart("v")),
        ({"type": "video_url", "video_url": {"url": "v"}}, VideoPart({"url": "v"})),
        ({"type": "input_video", "video_url": "v"}, VideoPart("v")),
        (TextPart("t"), TextPart("t")),
    ],
)
def test_a_part_of_each_known_type_is_read(part: Any, read: Any) -> None:
    (message,) = from_chat([{"role": "user", "content": [part]}])
    assert message.content == (read,)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "input_audio", "input_audio": {}}],
        [{"type": "file", "file": {}}],
        [{"text": "no type"}],
        [{"type": "text"}],
        [{"type": "text", "text": 3}],
        [3],
        {"type": "text", "text": "not in a list"},
        3,
    ],
    ids=str,
)
def test_content_of_an_unknown_kind_is_refused_with_its_place(content: Any) -> None:
    with pytest.raises(RenderError, match=r"messages\[0\]\.content"):
        render([{"role": "user", "content": content}])


def test_a_tool_result_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "seen "}, {"type": "image"}]
    text = body({"role": "tool", "name": "look", "content": parts})
    assert '<tool_output name="look">\nseen <|patch|>\n</tool_output>' in text


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"tool_call_id": "c1"}, "read"),
        ({"tool_call_id": "c1", "name": "given"}, "given"),
        ({"tool_call_id": "unknown"}, "unknown"),
        ({}, ""),
    ],
)
def test_a_tool_result_is_named_by_name_else_call_else_id(
    fields: dict[str, str], name: str
) -> None:
    text = body(called({}), {"role": "tool", "content": "x", **fields})
    assert f'<|start|>tool {name}<|message|><tool_output name="{name}">\nx\n' in text


@pytest.mark.parametrize("role", ["function", "Assistant", None, 3])
def test_another_role_is_refused(role: object) -> None:
    with pytest.raises(RenderError, match="roles are system, developer"):
        render([{"role": role, "content": "x"}])


@pytest.mark.parametrize("key", ["function_call", "audio", "images", "videos"])
def test_a_key_whose_content_would_be_lost_is_refused(key: str) -> None:
    with pytest.raises(RenderError, match=key):
        render([{"role": "assistant", "content": "x", key: ["something"]}])
    assert body({"role": "assistant", "content": "x", key: None}).endswith("x<|eot|>")


def test_a_refusal_stands_for_the_content() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "I won't."}
    assert body(refused).endswith("<|message|>I won't.<|eot|>")
    with pytest.raises(RenderError, match="refusal"):
        body(refused | {"content": "x"})


def test_pydantic_messages_of_the_openai_package_are_read() -> None:
    from openai.types.chat import ChatCompletionMessage

    message = ChatCompletionMessage.model_validate(called('{"path": "a"}'))
    assert body(message) == body(called({"path": "a"}))


def test_dicts_and_messages_don_t_mix_but_add_after_conversion() -> None:
    with pytest.raises(RenderError, match="from_chat"):
        render([SYSTEM, Message("user", "x")])
    assert render((*from_chat([SYSTEM]), Message("user", "x"))) == render(
        [SYSTEM, {"role": "user", "content": "x"}]
    )


@pytest.mark.parametrize("conversation", ["hi", {"role": "user"}, b"hi", [3], [None]], ids=str)
def test_what_is_no_conversation_is_refused(conversation: Any) -> None:
    with pytest.raises(RenderError):
        render(conversation)


@pytest.mark.parametrize(
    "message",
    [
        Message("user", "x", recipient="self"),
        Message("robot", "x"),  # type: ignore[arg-type]
    ],
    ids=["a user's recipient", "an unknown role"],
)
def test_a_message_that_no_wire_message_can_be_is_refused(message: Message) -> None:
    with pytest.raises(RenderError, match="message 0"):
        render([message])
