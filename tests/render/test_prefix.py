"""Conversations that share a beginning share the beginning of their prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from atem.messages import Message
from atem.render import from_chat, render, render_turn
from tests.render import strategies as some
from tests.render.calls import call

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SYSTEM = [{"role": "system", "content": "Be brief."}]
NEXT = [{"role": "user", "content": "next"}]


@given(shared=some.conversations(max_size=4), rest=some.conversations(max_size=3))
def test_a_longer_conversation_begins_with_the_ids_of_the_shorter(
    tokenizer: Tokenizer, shared: list[Any], rest: list[Any]
) -> None:
    shorter = SYSTEM + shared
    begun = render(shorter, add_generation_prompt=False).token_ids(tokenizer)
    longer = render(shorter + NEXT + rest).token_ids(tokenizer)
    assert longer[: len(begun)] == begun


@given(shared=some.conversations(max_size=4), said=st.tuples(some.text, some.text))
def test_a_prompt_grows_by_exactly_what_the_model_wrote(
    shared: list[Any], said: tuple[str, str]
) -> None:
    turn = (
        Message("assistant", said[0], recipient="self"),
        Message("assistant", said[1], recipient="user"),
        Message("assistant", calls=(call("read", {"path": said[0]}, raw_name="read.read"),)),
    )
    before = from_chat([*SYSTEM, *shared, *NEXT])
    grown = render(before).text() + render_turn(turn).text()
    assert render((*before, *turn), add_generation_prompt=False).text() == grown


def test_the_default_prompt_has_no_clock_in_it() -> None:
    assert "Current date: 2026-08-10." in render([Message("user", "Hi")]).text()
    dated = render([Message("user", "Hi")], current_date="2031-02-03").text()
    assert "Current date: 2031-02-03." in dated


def test_a_call_id_that_repeats_in_a_later_turn_doesn_t_rename_an_earlier_result() -> None:
    def turn(name: str) -> list[dict[str, Any]]:
        function = {"name": name, "arguments": {}}
        return [
            {"role": "assistant", "tool_calls": [{"id": "call_0", "function": function}]},
            {"role": "tool", "tool_call_id": "call_0", "content": f"of {name}"},
        ]

    text = render(turn("read") + turn("write")).text()
    assert '<tool_output name="read">\nof read\n' in text
    assert '<tool_output name="write">\nof write\n' in text
