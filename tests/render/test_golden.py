"""Whole prompts written out by hand from wire_format 2."""

from __future__ import annotations

import pytest

from atem.messages import ImagePart, Message, TextPart, VideoPart
from atem.render import render
from tests.render.calls import call

SYSTEM = (
    "<|start|>system<|message|>Be brief.\n\nReasoning strength: high.\n\n"
    '# Valid recipients: "self", "user".<|eot|>'
)
BRIEF = Message("system", "Be brief.")


def body(*messages: Message, **options: object) -> str:
    """The prompt behind the system message that every case begins with."""
    text = render((BRIEF, *messages), **options).text()  # type: ignore[arg-type]
    before = "<|begin_of_text|>" + SYSTEM
    assert text.startswith(before)
    return text.removeprefix(before)


def test_a_prompt_begins_with_bos_and_ends_with_an_open_assistant_header() -> None:
    assert body() == "<|start|>assistant"


def test_the_default_system_message_has_cutoff_and_a_fixed_date() -> None:
    assert render([Message("user", "Hi")]).text() == (
        "<|begin_of_text|><|start|>system<|message|>You are a helpful AI assistant.\n"
        "Knowledge cutoff: 2026-01-04.\nCurrent date: 2026-08-10.\n\n"
        'Reasoning strength: high.\n\n# Valid recipients: "self", "user".<|eot|>'
        "<|start|>user<|message|>Hi<|eot|><|start|>assistant"
    )


def test_without_a_generation_prompt_the_last_message_ends_it() -> None:
    assert body(Message("user", "Hi"), add_generation_prompt=False) == (
        "<|start|>user<|message|>Hi<|eot|>"
    )


def test_a_channel_opens_the_answer() -> None:
    opened = body(Message("user", "Hi"), channel="self")
    assert opened.endswith("<|eot|><|start|>assistant to=self<|message|>")


def test_a_turn_that_thinks_answers_calls_and_gets_a_result() -> None:
    turn = (
        Message("user", "Tide?"),
        Message("assistant", "Look it up.", recipient="self"),
        Message("assistant", "One moment.", recipient="user"),
        Message("assistant", calls=(call("tide", {"port": "Brest", "days": 2}, id="c1"),)),
        Message("tool", "high", call_id="c1"),
    )
    assert body(*turn) == (
        "<|start|>user<|message|>Tide?<|eot|>"
        "<|start|>assistant to=self<|message|>Look it up.<|eom|>"
        "<|start|>assistant to=user<|message|>One moment.<|eom|>"
        "<|start|>assistant to=tide<|message|><atem:function_calls>\n"
        '<atem:invoke name="tide">\n'
        '<atem:parameter name="port">Brest</atem:parameter>\n'
        '<atem:parameter name="days">2</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls><|eot|>"
        '<|start|>tool tide<|message|><tool_output name="tide">\nhigh\n</tool_output><|eot|>'
        "<|start|>assistant"
    )


@pytest.mark.parametrize(
    ("end_turn", "following", "terminator"),
    [
        (None, (), "<|eot|>"),
        (None, (Message("user", "x"),), "<|eot|>"),
        (None, (Message("assistant", "x"),), "<|eom|>"),
        (True, (Message("assistant", "x"),), "<|eot|>"),
        (False, (), "<|eom|>"),
    ],
)
def test_an_assistant_message_ends_its_turn_as_told_or_by_its_position(
    end_turn: bool | None, following: tuple[Message, ...], terminator: str
) -> None:
    text = body(Message("assistant", "a", end_turn=end_turn), *following)
    assert text.startswith(f"<|start|>assistant to=user<|message|>a{terminator}")


def test_pictures_are_placeholders_that_keep_their_source() -> None:
    prompt = render(
        [Message("user", (ImagePart("a.png"), TextPart("and"), VideoPart("b"), ImagePart("c")))]
    )
    assert "<|message|><|patch|>and<|video|><|patch|><|eot|>" in prompt.text()
    assert prompt.images == ("a.png", "c")
    assert prompt.videos == ("b",)


def test_the_name_written_in_history_is_the_one_the_model_wrote_and_results_get_the_declared() -> (
    None
):
    made = call("tide", {}, id="c1", raw_name="tide.tide", recipient="tide")
    text = body(
        Message("assistant", calls=(made,), recipient="tide"), Message("tool", call_id="c1")
    )
    assert (
        '<|start|>assistant to=tide<|message|><atem:function_calls>\n<atem:invoke name="tide.tide">'
        in text
    )
    assert '<|start|>tool tide<|message|><tool_output name="tide">' in text


def test_a_namespaced_tool_s_result_has_its_wire_name() -> None:
    made = call("send", {}, id="c1", namespace="mail", raw_name="mail.send")
    text = body(Message("assistant", calls=(made,)), Message("tool", call_id="c1"))
    assert "<|start|>tool mail.send<|message|>" in text


def test_several_calls_of_one_message_share_its_block() -> None:
    text = body(Message("assistant", calls=(call("a", {}), call("b", {}))))
    assert (
        '<atem:function_calls>\n<atem:invoke name="a">\n</atem:invoke>\n'
        '<atem:invoke name="b">\n</atem:invoke>\n</atem:function_calls><|eot|>'
    ) in text
