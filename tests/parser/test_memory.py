"""Memory grows with what is held, and what is held is bounded (docs/parser.md, "Memory and time"; wire_format 8).

Measured by ``tracemalloc`` at its peak, from the first token to the last event, for a consumer that
drops every event. The tokens are made while they are read, so the input itself is no part of it.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

import atem
from atem import Piece
from tests.parser.strategies import BOUNDARY, TOOLS, quoted_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KIB, MIB = 1024, 1024 * 1024
FOUR = {"ascii": "abcd", "latin": "é b\t", "cjk": "潮汐潮汐", "emoji": "🌊🌊👩‍", "quotes": '\\"\n"'}
VALUE = '<atem:invoke name="note"><atem:parameter name="{}">'
END = "</atem:parameter></atem:invoke>"
DOUBT = f"{BOUNDARY} to=user<|message|>"
"""A place where a tool body may end."""


class Reading:
    """The peak of one parse, and what its events said."""

    def __init__(self, tokens: Iterable[Any], **options: Any) -> None:
        list(atem.parse_stream(message("note", ["x"], part="body"), tools=list(TOOLS)))  # imports
        self.text = 0
        self.calls: list[atem.ToolCall] = []
        self.codes: list[str] = []
        gc.collect()
        tracemalloc.start()
        try:
            for event in atem.parse_stream(tokens, tools=list(TOOLS), **options):
                self._note(event)
            self.peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def _note(self, event: Any) -> None:
        if isinstance(event, atem.ContentDelta | atem.ReasoningDelta):
            self.text += len(event.text)
        elif isinstance(event, atem.CallEnd):
            self.calls = [event.call]  # the last one, so that none is kept for the test's sake
        elif isinstance(event, atem.Problem):
            self.codes.append(event.code)


def message(to: str, body: Iterable[str], *, part: str = "", end: str = "<|eot|>") -> Iterable[str]:
    """The tokens of a message; in the value of a parameter ``part``, if it is given."""
    opening, closing = (VALUE.format(part), END) if part else ("", "")
    return chain([f" to={to}", "<|message|>", opening], body, [closing, end])


def pieces(tokens: Iterable[str]) -> Iterable[Piece]:
    return (Piece(token, special=token.startswith("<|")) for token in tokens)


def octets(tokens: Iterable[str]) -> Iterable[bytes]:
    return (token.encode() for token in tokens)


TOKENS: dict[str, Callable[[Iterable[str]], Iterable[Any]]] = {
    "str": iter,
    "pieces": pieces,
    "bytes": octets,
}
as_tokens = pytest.mark.parametrize("kind", TOKENS.values(), ids=TOKENS)


# ---- Answers and thoughts --------------------------------------------------------------------


@as_tokens
@pytest.mark.parametrize("to", ["user", "self"])
def test_an_answer_or_a_thought_of_any_length_takes_constant_memory(to, kind):
    found = Reading(kind(message(to, repeat("abcd", MIB // 4))))
    assert found.text == MIB
    assert found.peak < 64 * KIB


@pytest.mark.parametrize("token", ["<|eo", "<|eom|> x", " to=x y", "<atem:function_calls>"])
@pytest.mark.parametrize("to", ["user", "self"])
def test_so_does_one_that_is_full_of_what_may_be_framing(to, token):
    found = Reading(message(to, repeat(token, MIB // 4 // len(token))))
    assert found.text > MIB // 5
    assert found.peak < 64 * KIB


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        (f" to=user<|message|>x{BOUNDARY}", 64 * KIB),
        # The validator leaves cycles, which wait for the collector.
        (f" to=ping<|message|>{quoted_block()}{BOUNDARY}", 256 * KIB),
    ],
    ids=["answers", "calls"],
)
def test_messages_that_are_over_leave_nothing_behind(unit, most):
    assert Reading(repeat(unit, MIB // 2 // len(unit))).peak < most


# ---- Arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"arguments": "whole"}], ids=str)
@pytest.mark.parametrize("four", FOUR.values(), ids=FOUR)
def test_a_long_argument_takes_little_more_than_twice_itself_and_its_json(four, options):
    """Its text is kept; then there are the value, its JSON, and for a moment the parts of that."""
    found = Reading(message("note", repeat(four, MIB // 4), part="body"), **options)
    (call,) = found.calls
    argument, json = sys.getsizeof(call.arguments["body"]), sys.getsizeof(call.arguments_json)
    assert len(call.arguments["body"]) == MIB // 4 * len(four)
    assert found.peak <= 2.25 * (argument + json)
    if json < 1.01 * argument:  # nothing in it is escaped
        assert found.peak <= 4.5 * argument


@as_tokens
def test_so_does_one_in_tokens_of_any_kind(kind):
    found = Reading(kind(message("note", repeat("abcd", MIB // 4), part="body")))
    (call,) = found.calls
    assert len(call.arguments["body"]) == MIB
    assert found.peak <= 4.5 * sys.getsizeof(call.arguments["body"])


# ---- Bounds ----------------------------------------------------------------------------------

BODIES = {
    "a string": ("", "body"),
    "an undeclared parameter": ("", "q"),
    "an undecided message": (f"x{DOUBT}", "body"),
    "an undecided message that quotes": (f"{quoted_block('note', 'x')}{DOUBT}", "body"),
}


@pytest.mark.parametrize("kind", [iter, octets], ids=["str", "bytes"])
@pytest.mark.parametrize(("start", "part"), BODIES.values(), ids=BODIES)
def test_a_call_past_its_bound_takes_no_more_memory(start, part, kind):
    body = chain([start], repeat("abcd" * 16, MIB // 16))
    found = Reading(kind(message("note", body, part=part)), max_call_chars=64 * KIB)
    assert found.calls == []
    assert found.codes[-1] == ("untrusted" if DOUBT in start else "call_too_long")
    assert found.peak < MIB


def test_nor_does_one_in_pieces():
    body = message("note", repeat("abcd" * 6, 180_000), part="body")
    found = Reading(pieces(body), max_call_chars=64 * KIB)
    assert (found.calls, found.codes[0]) == ([], "call_too_long")
    assert found.peak < MIB


def test_nor_does_a_block_without_a_header():
    tokens = chain(["<|message|><atem:function_calls>", VALUE.format("body")])
    tokens = chain(tokens, repeat("abcd" * 16, MIB // 16))
    found = Reading(tokens, recover={"headerless"}, max_call_chars=64 * KIB)
    assert found.text > 4 * MIB
    assert found.peak < MIB


def test_what_follows_the_turn_takes_no_memory():
    body = chain(["x<|eot|><|start|>user"], repeat("abcd", MIB // 4))
    assert Reading(message("user", body)).peak < 64 * KIB
