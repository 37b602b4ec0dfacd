"""A trace is the parser's own account: its events, its standing, and every character once."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from atem import Piece
from atem.cli.paint import KINDS
from atem.errors import OptionError, Unsupported
from atem.parser.states import Place, State
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from atem.trace.pieces import CUTS, MOST_CHARACTERS, MOST_PIECES, cut, piece_record, read_pieces
from atem.trace.records import event_record, turn_record
from atem.trace.tracer import Tracer, trace
from tests.parser.folding import examples, patience, places, sliced
from tests.parser.strategies import reasons, soups, splits, turns

pytestmark = patience
TOKENIZER = wrap(tiny_tokenizer())
drawn = turns() | soups()
any_text = st.text(st.characters(exclude_categories=["Cs"]))


def numbered():
    numbers = count()
    return lambda: f"call_{next(numbers)}"


def bare(event):
    return {key: value for key, value in event.items() if key not in ("paint", "arguments_json")}


def pieces_of(text, cuts):
    """Text and special tokens by turns, so that provenance is known of some."""
    parts = sliced(text, cuts)
    return [Piece(p, special=p.startswith("<|")) if at % 3 else p for at, p in enumerate(parts)]


@examples(200)
@given(drawn, reasons, places)
def test_the_events_are_those_of_parse_stream_and_the_pieces_are_the_input(turn, reason, cuts):
    text, tools = turn
    pieces = pieces_of(text, cuts)
    traced = trace(pieces, reason, tools=tools)
    events = list(atem.parse_stream(pieces, reason=reason, tools=tools, new_id=numbered()))
    told = [bare(event) for step in traced["steps"] for event in step["events"]]
    assert told == [event_record(event) for event in events]
    assert traced["turn"] == turn_record(atem.collect(events))
    assert "".join(step["text"] for step in traced["steps"]) == text
    assert read_pieces([piece_record(piece) for piece in pieces]) == pieces


@examples(200)
@given(drawn, reasons, places)
def test_what_is_told_and_what_is_held_are_what_was_read(turn, reason, cuts):
    text, tools = turn
    steps = trace(sliced(text, cuts), reason, tools=tools)["steps"]
    read = told = 0
    for step in steps:
        read += len(step["text"])
        told = max([told, *(event["span"][1] for event in step["events"])])
        assert (step["read"], step["told"]) == (read, told)
        assert step["state"] in {state.value for state in State}
    assert told == read == len(text)


@examples(200)
@given(drawn, reasons, places)
def test_every_character_has_a_kind_at_the_step_that_tells_it(turn, reason, cuts):
    text, tools = turn
    painted = {}
    for step in trace(sliced(text, cuts), reason, tools=tools)["steps"]:
        for event in step["events"]:
            for kind, start, end in event["paint"]:
                assert kind in KINDS
                painted |= dict.fromkeys(range(start, end), kind)
        assert set(painted) == set(range(step["told"]))


def test_the_arguments_of_a_verdict_are_there_as_the_text_that_they_were():
    number = "12345678901234567890"
    value = f'<atem:parameter name="n">{number}</atem:parameter>'
    text = f' to=f<|message|><atem:invoke name="f">\n{value}\n</atem:invoke><|eot|>'
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for tools in ([{"name": "f", "input_schema": schema}], []):
        (said,) = [
            event["arguments_json"]
            for step in trace(cut(text), tools=tools)["steps"]
            for event in step["events"]
            if event["type"] in ("call_end", "call_rejected")
        ]
        assert number in said


def test_a_call_is_being_formed_until_its_verdict():
    text = ' to=f<|message|><atem:invoke name="f">\n</atem:invoke><|eot|>'
    steps = trace(cut(text), tools=[{"name": "f", "input_schema": {"type": "object"}}])["steps"]
    kinds = [[paint[0] for e in s["events"] for paint in e["paint"]] for s in steps]
    assert any("forming" in each for each in kinds)
    assert ["call" in each for each in kinds] == [False] * (len(kinds) - 1) + [True]


def test_the_standing_says_where_in_header_body_and_boundary_the_parser_is():
    tracer = Tracer()
    said = [
        (step["state"], step["place"], step["to"])
        for step in map(
            tracer.feed,
            [
                " to=se",
                "lf<|message|>Hm",
                "<|eom|>",
                "<|start|>assistant to=x",
                "<|message|><atem:inv",
            ],
        )
    ]
    assert said == [
        (State.OPENING.value, "in the recipient", None),
        (State.REASONING.value, None, "self"),
        (State.BOUNDARY.value, State.REASONING.value, "self"),
        (State.HEADER.value, "in the recipient", None),
        (State.TOOL.value, Place.LEAD.value, "x"),
    ]


@examples(200)
@given(any_text | drawn.map(lambda turn: turn[0]), st.sampled_from(CUTS))
def test_a_cut_loses_nothing_and_keeps_control_tokens_whole(text, how):
    pieces = cut(text, how, TOKENIZER)
    assert "".join(pieces) == text
    assert all(
        piece in ("<|eom|>", "<|eot|>") for piece in pieces if "<|eo" in piece and "|>" in piece
    )
    assert all(len(piece) <= 14 or "<|" in piece or how == "tokens" for piece in pieces)


def test_a_cut_that_is_none_is_refused():
    with pytest.raises(OptionError, match="words, characters, tokens"):
        cut("x", "bytes")
    with pytest.raises(Unsupported, match="no tokenizer"):
        cut("x", "tokens")


@pytest.mark.parametrize(
    "given", ["x", [1], [{"text": 1}], [{"special": True}], [{"text": "x", "special": 1}]]
)
def test_pieces_that_are_none_are_refused(given):
    with pytest.raises(OptionError, match="pieces"):
        read_pieces(given)


@pytest.mark.parametrize("pieces", [["x"] * (MOST_PIECES + 1), ["x" * (MOST_CHARACTERS + 1)]])
def test_a_turn_that_is_too_long_to_look_at_is_refused(pieces):
    with pytest.raises(OptionError, match="at most"):
        trace(pieces)


@given(st.text(max_size=40).flatmap(splits))
def test_a_trace_is_the_same_every_time(pieces):
    assert trace(pieces) == trace(pieces)
