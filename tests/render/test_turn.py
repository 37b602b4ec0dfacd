"""What the model would have written: the inverse of parsing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from atem.errors import RenderError
from atem.messages import Message, RejectedCall
from atem.render import render, render_turn
from tests.render.calls import call

THOUGHT = Message("assistant", "Hm.", recipient="self")
ANSWER = Message("assistant", "Yes.", recipient="user")
CALLED = Message("assistant", recipient="read", calls=(call("read", {"path": "a"}),))
REJECTED = RejectedCall("malformed", None, "read", None, "<atem:invoke>")


def test_a_turn_continues_the_generation_prompt() -> None:
    assert render_turn([THOUGHT, ANSWER]).text() == (
        " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Yes.<|eot|>"
    )


def test_a_call_is_the_canonical_block() -> None:
    assert render_turn([CALLED]).text() == (
        ' to=read<|message|><atem:function_calls>\n<atem:invoke name="read">\n'
        '<atem:parameter name="path">a</atem:parameter>\n</atem:invoke>\n'
        "</atem:function_calls><|eot|>"
    )


def test_a_recipient_of_none_is_a_header_without_one() -> None:
    text = render_turn([Message("assistant", "a"), Message("assistant", "b")]).text()
    assert text == "<|message|>a<|eom|><|start|>assistant<|message|>b<|eot|>"


def test_a_last_message_that_ends_no_turn_ends_with_eom() -> None:
    open_turn = Message("assistant", "a", recipient="user", end_turn=False)
    assert render_turn([open_turn]).text().endswith("a<|eom|>")


def test_an_object_with_messages_is_a_turn() -> None:
    turn = SimpleNamespace(messages=(THOUGHT, ANSWER))
    assert render_turn(turn) == render_turn([THOUGHT, ANSWER])


def test_an_empty_turn_is_an_empty_prompt() -> None:
    assert render_turn([]).segments == ()


def test_a_rejected_call_is_no_part_of_a_new_turn() -> None:
    message = Message("assistant", recipient="read", calls=(*CALLED.calls, REJECTED))
    with pytest.raises(RenderError, match="malformed"):
        render_turn([message])


@pytest.mark.parametrize("write", [render_turn, render])
@pytest.mark.parametrize("name", ["self", "user"])
def test_a_call_in_the_channel_of_text_is_refused(write: object, name: str) -> None:
    for message in (
        Message("assistant", calls=(call(name, {}),)),
        Message("assistant", recipient=name, calls=(call("read", {}),)),
    ):
        with pytest.raises(RenderError, match="would be read as"):
            write([message])  # type: ignore[operator]


@pytest.mark.parametrize("write", [render_turn, render])
def test_content_and_calls_in_the_channel_of_a_tool_are_refused(write: object) -> None:
    both = Message("assistant", "text", recipient="read", calls=CALLED.calls)
    with pytest.raises(RenderError, match="content and calls"):
        write([both])  # type: ignore[operator]


@pytest.mark.parametrize(
    "messages",
    [
        [Message("user", "x")],
        [Message("assistant", "x", end_turn=True), ANSWER],
        [Message("assistant", "x", recipient="a b")],
    ],
    ids=["another role", "an end inside", "a broken recipient"],
)
def test_what_no_turn_can_be_is_refused(messages: list[Message]) -> None:
    with pytest.raises(RenderError):
        render_turn(messages)
