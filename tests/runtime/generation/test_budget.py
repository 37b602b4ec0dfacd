"""The budget for reasoning: what is counted, and what the engine writes when it is spent."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import atem
from atem import wire
from atem.engine import Sampling
from atem.errors import Unsupported
from atem.runtime.budget import ReasoningBudget
from atem.tokenizer import wrap
from tests.parser.folding import examples
from tests.parser.strategies import turns
from tests.parser.tokens import TOKENIZER, byte_tokenizer, ids, spelled
from tests.runtime.generation.playing import (
    EOM,
    EOT,
    FORCED,
    KNOWN,
    PROMPT,
    SELF,
    begun,
    decoded,
    play,
    row,
    said,
)

MANY = 10**9
OPENED = [*PROMPT, *ids(SELF)]


def parsed_count(tokens: list[int], tools: Any = (), **options: Any) -> int:
    """Tokens in bodies to self, by the parser."""
    total, recipient = 0, None
    for event in atem.parse_stream(tokens, tools=tools, tokenizer=TOKENIZER, **options):
        if isinstance(event, atem.MessageStart):
            recipient = event.recipient
        elif isinstance(event, atem.MessageEnd) and recipient == "self":
            total += event.tokens or 0
    return total


def counted(tokens: list[int], prompt: list[int] = PROMPT) -> int:
    budget = ReasoningBudget(MANY, KNOWN, prompt)
    for token in tokens:
        budget.record(token)
    return budget.count


def until_done(tokens: list[int], tools: Any) -> list[int]:
    """``tokens`` as far as they are one turn; a header of another role ends it as well."""
    parser = atem.Parser(tools=tools, tokenizer=TOKENIZER)
    for place, token in enumerate(tokens, 1):
        parser.feed(token)
        if parser.done:
            return tokens[:place]
    return tokens


FRAMED = re.compile(r"<\|start\|>\s*(assistant)?\s*to=[^\s<]*\s*<\|message\|>")
BARE = re.compile(r"\sto=[^\s<]+\s*<\|message\|>")


def has_bare_header(text: str) -> bool:
    """Whether a header without ``<|start|>`` stands anywhere but at the beginning."""
    return BARE.search(FRAMED.sub("<|message|> ", f"<|start|>assistant{text}")) is not None


@examples(200)
@given(case=turns())
def test_the_parser_counts_the_same_tokens(case: Any) -> None:
    text, tools = case
    tokens = until_done(ids(text), tools)
    assume(not has_bare_header(decoded(tokens)))
    assert counted(tokens) == parsed_count(tokens, tools)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"{SELF}abc", 3),
        (f"{SELF}abc<|eom|><|start|>assistant to=user<|message|>de", 3),
        (f"{SELF}abc<|eom|><|start|>assistant{SELF}de", 5),
        (f"{SELF}abc<|start|>assistant to=user<|message|>de", 3),
        (f"{SELF}ab<|message|>c", 4),
        (f"{SELF}ab<|patch|>c", 4),
        (f"{SELF}潮", 3),
        ("to=self<|message|>ab", 2),
        ("\n to=self \n<|message|>ab", 2),
        (f"<|start|>assistant{SELF}ab", 2),
        (" to=user<|message|>ab", 0),
        (" to=selfish<|message|>ab", 0),
        ("<|message|>ab", 0),
        ("no header to=self<|message|>ab", 0),
    ],
)
def test_counted_is_what_stands_strictly_inside_bodies_to_self(text: str, count: int) -> None:
    assert counted(ids(text)) == parsed_count(ids(text)) == count


def test_framing_that_is_spelled_with_ordinary_tokens_is_text() -> None:
    quoted = [*ids(SELF), *spelled("<|eom|> to=x<|message|>"), *ids("a")]
    assert counted(quoted) == len(quoted) - len(ids(SELF))


@pytest.mark.parametrize("header", [" to=ping<|message|>", "\nto=ping \n<|message|>"])
def test_a_bare_header_to_a_tool_leaves_reasoning(header: str) -> None:
    # Its own few characters were counted before anyone could know (wire_format 5.3).
    call = '<atem:function_calls>\n<atem:invoke name="ping">\n</atem:invoke>\n'
    tokens = ids(f"{SELF}ab{header}{call}")
    inside = len(ids(header)) - 1
    assert counted(tokens) == 2 + inside
    steps = play([*tokens, EOT], reasoning_budget=2 + inside + 1)
    assert said(steps) == [*tokens, EOT]


@pytest.mark.parametrize(
    "header", [" to=user<|message|>", " to=self<|message|>", "x=ping<|message|>"]
)
def test_other_text_before_a_stray_marker_stays_reasoning(header: str) -> None:
    tokens = ids(f"{SELF}a{header}bc")
    assert counted(tokens) == len(tokens) - len(ids(SELF)) == parsed_count(tokens)


# ---- What is written -----------------------------------------------------------------------

ANSWER = "Yes.<|eot|>"


@pytest.mark.parametrize("limit", [0, 1, 3])
@pytest.mark.parametrize("opened", [False, True])
def test_at_the_limit_the_channel_is_closed_and_the_answer_opened(limit: int, opened: bool) -> None:
    header = "" if opened else SELF
    prompt = OPENED if opened else PROMPT
    wanted = ids(f"{header}abcdefghijkl"[: len(header) + limit] + ANSWER)
    steps = play(wanted, prompt, reasoning_budget=limit)
    assert decoded(said(steps)) == f"{header}{'abcdefghijkl'[:limit]}{FORCED}{ANSWER}"
    turn = atem.parse(steps, channel="self" if opened else None)
    assert (turn.reasoning, turn.content) == ("abcdefghijkl"[:limit], "Yes.")


def test_the_count_goes_on_over_the_messages_of_a_turn() -> None:
    wanted = f"{SELF}abc<|eom|><|start|>assistant{SELF}de"
    steps = play(ids(wanted + ANSWER), reasoning_budget=5)
    assert decoded(said(steps)) == wanted + FORCED + ANSWER


def test_a_channel_that_is_opened_again_is_closed_again() -> None:
    again = f"Oh.<|eom|><|start|>assistant{SELF}"
    steps = play(ids(f"{SELF}a{again}{again}{ANSWER}"), reasoning_budget=1)
    assert decoded(said(steps)) == f"{SELF}a{FORCED}{again}{FORCED}{again}{FORCED}{ANSWER}"


def test_within_the_budget_nothing_is_written() -> None:
    wanted = ids(f"{SELF}abc<|eom|><|start|>assistant to=user<|message|>{ANSWER}")
    assert said(play(wanted, reasoning_budget=4)) == wanted


def test_the_reasoning_of_earlier_turns_and_of_users_counts_nothing() -> None:
    earlier = ids(
        f"<|start|>assistant{SELF}abc<|eom|><|start|>assistant to=user<|message|>D<|eot|>"
    )
    forged = [*ids("<|start|>user<|message|>"), *spelled(f"<|start|>assistant{SELF}"), EOT]
    prompt = [*earlier, *forged, *ids("<|start|>assistant")]
    assert said(play(ids(f"{SELF}ab"), prompt, reasoning_budget=3)) == ids(f"{SELF}ab")


@examples(60)
@given(case=turns(), limit=st.integers(0, 12), whole=st.integers(1, 200))
def test_no_turn_has_more_reasoning_than_its_budget(case: Any, limit: int, whole: int) -> None:
    text, tools = case
    steps = play(ids(text), reasoning_budget=limit, max_tokens=whole)
    tokens = said(steps)
    # A special token that breaks a character begins where the parser puts that character.
    assume(not has_bare_header(decoded(tokens)) and "\ufffd" not in decoded(tokens))
    assert parsed_count(tokens, tools) <= limit
    assert [step.finish for step in steps[:-1]] == [None] * (len(steps) - 1)


@pytest.mark.parametrize("more", range(1, len(ids(FORCED)) + 1))
def test_the_limit_of_tokens_may_end_it_in_the_middle_of_what_is_written(more: int) -> None:
    start = len(ids(f"{SELF}a"))
    steps = play(ids(f"{SELF}ab"), reasoning_budget=1, max_tokens=start + more)
    assert said(steps) == [*ids(f"{SELF}a"), *ids(FORCED)[:more]]
    assert steps[-1].finish == "length"


def test_a_stop_token_inside_reasoning_ends_the_turn() -> None:
    steps = play([*ids(f"{SELF}a"), EOT], reasoning_budget=9)
    assert (said(steps), steps[-1].finish) == ([*ids(f"{SELF}a"), EOT], "stop")


def test_a_written_token_that_stops_ends_the_turn() -> None:
    steps = play(ids(f"{SELF}ab"), reasoning_budget=1, stops=frozenset({EOM}))
    assert (said(steps), steps[-1].finish) == ([*ids(f"{SELF}a"), EOM], "stop")


def test_written_tokens_have_the_log_probabilities_that_the_model_gave_them() -> None:
    sampling = Sampling(temperature=0, logprobs=2)
    steps = play(ids("b"), OPENED, reasoning_budget=0, sampling=sampling, max_tokens=5)
    wanted = torch.from_numpy(row(ids("b")[0])).double().log_softmax(-1)
    assert said(steps) == ids(FORCED)[:5]
    for step in steps:
        assert step.logprobs == (pytest.approx(wanted[step.ids[0]].item(), abs=1e-9),)
        assert step.top_logprobs[0][0][0] == ids("b")[0]


def test_without_log_probabilities_a_written_token_needs_one_candidate() -> None:
    free = Sampling(top_k=0)
    assert begun(OPENED, reasoning_budget=0, sampling=free).need == 1
    assert begun(OPENED, reasoning_budget=1, sampling=free).need is None


@pytest.mark.parametrize("logprobs", [None, 1])
def test_a_model_without_the_ids_that_it_has_to_write_is_refused(logprobs: int | None) -> None:
    with pytest.raises(Unsupported, match="reasoning_budget= has to write the id"):
        begun([0], vocab_size=EOM, reasoning_budget=5, sampling=Sampling(logprobs=logprobs))


@pytest.mark.parametrize("absent", [wire.EOM, wire.START, wire.MESSAGE])
def test_a_tokenizer_that_can_not_write_it_is_refused(absent: str) -> None:
    others = [text for text in wire.FRAMING if text != absent]
    with pytest.raises(Unsupported, match=re.escape(absent)):
        ReasoningBudget(5, wrap(byte_tokenizer(*others)), [0])
