"""Requests that are large on purpose: each is read, or refused, in a time and memory that has a bound."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from atem.responses.calls import readable
from atem.responses.faults import ApiError
from atem.responses.request import input_tokens, truncate
from atem.testing.scripted import ScriptedEngine
from tests.responses.request.asking import ask, function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from atem.tokenizer import Tokenizer

ENGINE = ScriptedEngine([])


class Counting:
    """A tokenizer that notes how much it is given."""

    def __init__(self) -> None:
        self.longest = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(ENGINE.tokenizer, name)

    def encode(self, text: str) -> list[int]:
        self.longest = max(self.longest, len(text))
        return ENGINE.tokenizer.encode(text)


@pytest.fixture
def soon() -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < 5


def test_what_can_not_fit_by_any_means_is_not_encoded() -> None:
    tokenizer: Any = Counting()
    context = 1000
    with pytest.raises(ApiError, match="many more") as refused:
        truncate(ask("word " * 10_000), tokenizer, context)
    assert refused.value.code == "context_length_exceeded"
    assert tokenizer.longest == 0


def test_a_conversation_is_shortened_without_encoding_all_of_it() -> None:
    tokenizer: Any = Counting()
    said = [{"role": "user", "content": "word " * 100} for _ in range(400)]
    shorter = truncate(ask(said, truncation="auto"), tokenizer, 1000)
    assert shorter.messages[-1] == ask(said).messages[-1]
    assert 0 < tokenizer.longest < 32 * 1000


def test_a_number_of_tokens_that_nobody_needs_is_refused() -> None:
    tokenizer: Tokenizer = ENGINE.tokenizer
    with pytest.raises(ApiError, match="many more"):
        input_tokens(ask("a" * (33 * ENGINE.info.context)), tokenizer, ENGINE.info)


@pytest.mark.usefixtures("soon")
def test_ids_that_come_again_in_a_long_turn_cost_no_more_than_others() -> None:
    twice = [*range(9000), *range(9000)]
    calls = [
        {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in twice
    ]
    assert len(ask(calls).messages) == 2 * len(calls)


@pytest.mark.usefixtures("soon")
def test_arguments_of_very_many_values_are_shown_as_the_text_that_they_are() -> None:
    text = '{"a":[' + "[]," * 200_000 + "[]]}"
    assert readable(text) == {"arguments": text}
    usual = json.dumps({"a": [[]] * 1000})
    assert readable(usual) == {"a": [[]] * 1000}


def test_a_choice_has_no_more_entries_than_there_can_be_tools() -> None:
    entries = [{"type": "function", "name": "f"}] * 2000
    choice = {"type": "allowed_tools", "mode": "auto", "tools": entries}
    with pytest.raises(ApiError, match="entries"):
        ask(tools=[function("f")], tool_choice=choice)
