"""What the model is told about a call that did not run."""

from __future__ import annotations

import pytest

from atem.messages import RejectedCall, Violation
from atem.tools import Tool, ToolSet, feedback

TOOLS = ToolSet([Tool("read_file"), Tool("post", namespace="ledger")])


def rejected(reason, raw_name="red_file", text="", **fields):
    return RejectedCall(reason, "call_1", raw_name, None, text, **fields)


def test_it_is_the_tool_message_that_answers_the_call():
    message = feedback(rejected("unknown_tool"), tools=TOOLS)
    assert (message.role, message.name, message.call_id) == ("tool", "red_file", "call_1")
    assert message == TOOLS.feedback(rejected("unknown_tool"))


def test_an_unknown_tool_is_named_with_the_nearest_and_with_what_exists():
    call = rejected("unknown_tool", suggestions=("read_file",))
    text = feedback(call, tools=TOOLS).content
    assert "no tool called 'red_file'" in text
    assert "Nearest: read_file." in text
    assert "Tools that exist: read_file, ledger.post." in text
    assert "Tools that exist" not in feedback(call).content


def test_no_tools_at_all_is_said():
    assert "Tools that exist: none." in ToolSet().feedback(rejected("unknown_tool")).content


def test_a_malformed_call_is_quoted_and_asked_for_again():
    text = feedback(rejected("malformed", text="<atem:invoke name='red_file'>")).content
    assert "not in the form of a tool call" in text
    assert "You wrote: <atem:invoke name='red_file'>" in text
    assert "whole call again" in text


def test_a_cut_call_is_asked_for_in_a_smaller_piece():
    text = feedback(rejected("incomplete", text="<atem:invoke")).content
    assert "cut off" in text
    assert "smaller piece" in text


def test_invalid_arguments_are_listed_by_path():
    errors = (
        Violation("/a", "5 is not of type 'string'"),
        Violation("", "'b' is a required property"),
    )
    text = feedback(rejected("invalid_arguments", errors=errors)).content
    assert "- /a: 5 is not of type 'string'" in text
    assert "- /: 'b' is a required property" in text


@pytest.mark.parametrize("reason", ["unknown_tool", "malformed", "incomplete", "invalid_arguments"])
def test_every_reason_says_that_this_call_was_not_run(reason):
    assert "This call was not run." in feedback(rejected(reason)).content
    assert "without a name" in feedback(rejected(reason, raw_name="")).content


@pytest.mark.parametrize("reason", ["unknown_tool", "malformed", "incomplete", "invalid_arguments"])
def test_the_text_is_bounded_whatever_the_model_wrote(reason):
    huge = "x" * 1_000_000
    many = ToolSet(Tool(f"tool_{index}_{huge[:500]}") for index in range(1000))
    errors = tuple(Violation(f"/{index}/{huge[:2000]}", huge[:200]) for index in range(100))
    call = rejected(reason, huge, huge, suggestions=(huge, huge, huge), errors=errors)
    assert len(feedback(call, tools=many).content) < 20_000


def test_a_quote_keeps_both_ends_and_says_how_much_is_left_out():
    text = feedback(rejected("malformed", text="begin" + "x" * 10_000 + "end")).content
    assert "begin" in text
    assert "end\n" in text
    assert "9742 characters left out" in text


def test_tools_that_are_not_listed_are_counted():
    text = (
        ToolSet(Tool(f"t{index}") for index in range(50)).feedback(rejected("unknown_tool")).content
    )
    assert "t39 and 10 more." in text


def test_braces_in_a_name_are_text():
    assert "'{0.__class__}'" in feedback(rejected("unknown_tool", "{0.__class__}")).content
