"""A turn that was parsed, and the replies to it, go into the next prompt whatever the model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atem
from atem.messages import Message, RejectedCall, ToolCall
from atem.render import render
from atem.tools import ToolSet, feedback
from tests.parser import strategies as some
from tests.render.calls import call

READ = [some.tool("read", path=some.STRING)]
GOOD = '<atem:invoke name="read">\n<atem:parameter name="path">a</atem:parameter>\n</atem:invoke>'
BAD = GOOD.replace('"read"', '"raed"')
OPEN = '<atem:invoke name="read">\n<atem:parameter name="path">a'


def block(*invokes: str) -> str:
    return "\n".join(["<atem:function_calls>", *invokes, "</atem:function_calls>"])


def rejected(text: str, raw_name: str = "read") -> RejectedCall:
    return RejectedCall("malformed", None, raw_name, None, text)


def history(*calls: ToolCall | RejectedCall, recipient: str | None = "read") -> str:
    """The body of one message of the past that holds ``calls``."""
    message = Message("assistant", recipient=recipient, calls=calls)
    last = render([Message("user", "x"), message], add_generation_prompt=False).text()
    return last.rpartition("<|start|>assistant")[2]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (block(BAD), "unknown_tool"),
        (block(BAD, GOOD, BAD), "unknown_tool"),
        (block(GOOD, BAD), "unknown_tool"),
        (block(BAD, BAD), "unknown_tool"),
        (block(GOOD.replace('"path"', "path")), "malformed"),
        (block(), "malformed"),
        ("Sure, at once.", "malformed"),
        ("", "malformed"),
        (f"<atem:function_calls>\n{OPEN}", "incomplete"),
        (f"<atem:function_calls>\n{GOOD}\n{OPEN}", "incomplete"),
    ],
)
def test_a_message_with_a_rejected_call_is_history_as_it_was_written(
    body: str, reason: str
) -> None:
    written = f" to=read<|message|>{body}<|eot|>"
    turn = atem.parse(written, tools=READ)
    assert reason in {each.reason for each in turn.rejected}
    prompt = render([Message("user", "x"), *turn.messages], add_generation_prompt=False)
    assert prompt.text().endswith(f"<|start|>assistant{written}")


def test_a_text_that_is_no_bare_invoke_is_put_into_no_block() -> None:
    for text in ("hello", block(BAD), f"\n{BAD}", "<atem:function_calls>\n", ""):
        assert history(rejected(text)) == f" to=read<|message|>{text}<|eot|>"


def test_a_bare_invoke_is_put_into_a_block() -> None:
    assert history(rejected(BAD)) == f" to=read<|message|>{block(BAD)}<|eot|>"


def test_calls_and_rejected_ones_keep_their_order() -> None:
    made = call("read", {"path": "a"})
    written = history(rejected(BAD), made, rejected("junk"), made, rejected(BAD))
    body = "\n".join([block(BAD, GOOD), "junk", block(GOOD, BAD)])
    assert written == f" to=read<|message|>{body}<|eot|>"


def test_what_a_rejected_call_spells_is_no_control_token() -> None:
    message = Message("assistant", recipient="read", calls=(rejected("<|eot|><|start|>user"),))
    segments = render([message], add_generation_prompt=False).segments
    assert [segment.text for segment in segments if segment.control][-3:] == [
        "<|start|>",
        "<|message|>",
        "<|eot|>",
    ]


def test_a_call_whose_written_name_is_no_recipient_goes_to_its_tool_as_declared() -> None:
    made = call("read", {}, raw_name="x y.read")
    written = history(ToolCall(**{**fields(made), "recipient": None}), recipient=None)
    assert written.startswith(" to=read<|message|>")
    assert '<atem:invoke name="x y.read">' in written


def test_text_before_a_block_without_a_header_is_a_message_before_the_call() -> None:
    turn = atem.parse(f"Sure. {block(GOOD)}<|eot|>", tools=READ, recover={"headerless"})
    assert turn.messages[0].content == "Sure. "
    assert (
        render([*turn.messages], add_generation_prompt=False)
        .text()
        .endswith(
            "<|start|>assistant to=user<|message|>Sure. <|eom|>"
            f"<|start|>assistant to=read<|message|>{block(GOOD)}<|eot|>"
        )
    )


def fields(made: ToolCall) -> dict[str, object]:
    return {name: getattr(made, name) for name in ToolCall.__slots__}


@pytest.mark.parametrize(
    "raw_name", ["", "a b", "a\n", 'a b<c"', "<|eot|>", "x" * 10_000, "\ud800", "a>"]
)
def test_the_reply_to_a_name_that_can_t_be_written_has_a_safe_one(raw_name: str) -> None:
    reply = feedback(rejected("?", raw_name))
    assert reply.name == "unknown"
    assert '<tool_output name="unknown">' in render([reply]).text()


@pytest.mark.parametrize("raw_name", ["read", "a.b", "größe", "a\u00a0b", "self"])
def test_the_reply_to_any_other_name_has_that_name(raw_name: str) -> None:
    reply = feedback(rejected("?", raw_name))
    assert f'<|start|>tool {raw_name}<|message|><tool_output name="{raw_name}">' in (
        render([reply]).text()
    )


@settings(max_examples=300, deadline=None)
@given(
    drawn=some.turns() | some.soups(),
    reason=some.reasons,
    unknown=st.sampled_from(("reject", "forward", "content")),
)
def test_no_turn_fails_to_be_history(drawn: some.Turn, reason: str, unknown: str) -> None:
    text, tools = drawn
    recover = {"reasoning", "glued", *(["headerless"] if tools else [])}
    turn = atem.parse(text, tools=tools, reason=reason, unknown=unknown, recover=recover)
    replies = [ToolSet.of(tools).feedback(each) for each in turn.rejected]
    prompt = render([Message("user", "x"), *turn.messages, *replies]).text()
    for each in turn.rejected:
        assert each.text in prompt
