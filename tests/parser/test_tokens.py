"""Tokens of every kind: whole, cut inside a character, counted, and the last of a turn."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from atem import Piece, Step
from atem.errors import TokenError
from tests.parser.spelling import (
    END,
    EOM,
    EOT,
    HALF,
    MESSAGE,
    PING,
    START,
    TOOLS,
    call,
    calls,
    codes,
    rows,
    to,
    turn,
    verdicts,
)
from tests.parser.tokens import (
    BYTE_IDS,
    TOKENIZER,
    TURN,
    byte_tokenizer,
    ids,
    pieces,
    plain,
    read,
    read_ids,
    spelled,
)

# ---- Every kind of token --------------------------------------------------------------------------

KINDS = {
    "str": [TURN],
    "characters": list(TURN),
    "bytes": [TURN.encode()],
    "single bytes": [bytes([byte]) for byte in TURN.encode()],
    "pieces": pieces(TURN),
    "ids": ids(TURN),
    "steps of ids": [Step(ids=(one,)) for one in ids(TURN)],
    "a step of many ids": [Step(ids=tuple(ids(TURN)))],
    "steps of a piece": [Step(ids=(7,), piece=piece) for piece in pieces(TURN)],
    "a step of many pieces": [Step(piece=tuple(pieces(TURN)))],
    "steps of text": [Step(ids=(7,), piece=char) for char in TURN],
    "a mixture": [TURN[:30], *TURN[30:60].encode().split(b"~"), "", b"", *pieces(TURN[60:])],
}


@pytest.mark.parametrize("tokens", KINDS.values(), ids=KINDS)
def test_every_kind_of_token_gives_the_same_turn(tokens):
    found = read(tokens, tokenizer=TOKENIZER)
    assert found.reasoning == "Ebb 🌊 at nine?"
    assert calls(found) == [("save", {"path": "潮.txt", "body": "é\n 5"})]
    assert (found.content, found.complete, codes(found)) == ("Fertig: 👩‍🚀.\r\n", True, [])


def test_one_string_and_one_bytes_are_a_whole_turn():
    assert read(TURN) == read(TURN.encode()) == read([TURN])


@pytest.mark.parametrize(
    "token", [None, 1.5, True, ["a"], {"text": "a"}, ("a", True), bytearray(b"a")]
)
def test_a_token_of_another_kind_is_refused(token):
    with pytest.raises(TokenError, match=type(token).__name__):
        atem.Parser(tokenizer=TOKENIZER).feed(token)


def test_an_id_without_a_tokenizer_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match="tokenizer="):
        atem.Parser().feed(200008)


@pytest.mark.parametrize("token", [-1, 10**9])
def test_an_id_that_the_tokenizer_lacks_is_refused(token):
    with pytest.raises(TokenError, match=str(token)):
        atem.Parser(tokenizer=TOKENIZER).feed(token)


def test_a_tokenizer_that_cannot_give_bytes_is_refused():
    with pytest.raises(ValueError, match="tokenizer="):
        atem.Parser(tokenizer=object())


# ---- UTF-8 cut anywhere ----------------------------------------------------------------------------


@given(text=st.text(st.characters(exclude_categories=["Cs"])), size=st.integers(1, 5))
def test_text_as_bytes_in_any_pieces_is_that_text(text, size):
    data = text.encode()
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    assert read(parts, channel="user").content == atem.parse(text, channel="user").content


@given(data=st.binary(max_size=40), size=st.integers(1, 5))
def test_bytes_that_are_no_utf_8_become_replacement_characters(data, size):
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    assert read(parts, channel="user").content == data.decode("utf-8", "replace")


@given(data=st.binary(max_size=40))
def test_ids_that_are_no_utf_8_become_replacement_characters(data):
    found = read([BYTE_IDS[byte] for byte in data], tokenizer=TOKENIZER, channel="user")
    assert found.content == data.decode("utf-8", "replace")


def test_half_a_character_is_held_until_its_other_half():
    parser = atem.Parser(channel="user")
    first, *rest = (bytes([byte]) for byte in "🌊".encode())
    assert rows(parser.feed(b"a" + first)) == [("MessageStart", "user"), ("ContentDelta", "a")]
    assert [rows(parser.feed(byte)) for byte in rest] == [[], [], [("ContentDelta", "🌊")]]


def test_half_a_character_at_the_end_is_replaced_and_not_lost():
    assert read([to("user", "Ebb ").encode() + "🌊".encode()[:3]]).content == "Ebb \ufffd"


@pytest.mark.parametrize(
    "behind", ["a", Piece("a"), Piece(EOT, special=True), Step(piece="a"), Step(ids=(ids("a")[0],))]
)
def test_half_a_character_before_another_kind_of_token_is_replaced(behind):
    tokens = ["x", "🌊".encode()[:2], behind]
    found = read(tokens, channel="user", tokenizer=TOKENIZER)
    assert found.content == ("x\ufffd" if behind == Piece(EOT, special=True) else "x\ufffda")


def test_half_a_character_before_a_special_id_is_replaced():
    half = spelled("🌊")[:2]
    found = read_ids(ids(to("user", "x")), half, ids(EOT))
    assert (found.content, [m.recipient for m in found.messages]) == ("x\ufffd", ["user"])


def test_a_character_may_be_cut_inside_a_value():
    tokens = [bytes([byte]) for byte in turn(call("save", body="潮\n🌊")).encode()]
    events = list(atem.parse_stream(tokens, tools=TOOLS))
    deltas = [event.json for event in events if isinstance(event, atem.ArgumentsDelta)]
    assert json.loads("".join(deltas)) == {"body": "潮\n🌊"}
    assert not any("\ufffd" in delta for delta in deltas)


# ---- Tokens counted in MessageEnd -------------------------------------------------------------------


def counts(tokens, **options):
    options.setdefault("tools", TOOLS)
    return [
        event.tokens
        for event in atem.parse_stream(tokens, **options)
        if isinstance(event, atem.MessageEnd)
    ]


COUNTED = turn(to("self", "One."), to("self", ""), call("ping"), to("user", "Ebb at nine"))
LENGTHS = [4, 0, len(PING), 11]


def test_the_tokens_of_every_body_are_counted_without_header_and_terminator():
    assert counts(pieces(COUNTED)) == LENGTHS
    assert counts(ids(COUNTED), tokenizer=TOKENIZER) == LENGTHS
    assert counts([Step(ids=tuple(ids(COUNTED)))], tokenizer=TOKENIZER) == LENGTHS


def test_a_token_counts_whatever_its_length():
    tokens = [Piece(" to=self"), Piece(MESSAGE, special=True), *map(Piece, ["One", " two", "."])]
    assert counts([*tokens, Piece(EOT, special=True)]) == [3]


def test_a_character_of_several_ids_counts_each_of_them():
    assert counts(ids(turn(to("user", "🌊"))), tokenizer=TOKENIZER) == [4]


def test_tokens_are_counted_without_a_terminator():
    assert counts(pieces(to("self", "One."))) == [4]
    assert counts(pieces(f"{to('self', 'One.')}{START}assistant to=user{MESSAGE}Hi.")) == [4, 3]


def test_a_quoted_marker_counts_as_the_tokens_it_is_spelled_with():
    tokens = [*pieces(to("user", "")), *plain(EOM), Piece(EOT, special=True)]
    assert counts(tokens) == [len(EOM)]


def test_tokens_are_counted_when_text_decides_too():
    tokenizer = byte_tokenizer()
    assert counts(tokenizer.encode(COUNTED).ids, tokenizer=tokenizer) == LENGTHS


def test_text_and_bytes_are_not_counted():
    assert counts([COUNTED]) == counts(list(COUNTED)) == counts([COUNTED.encode()]) == [None] * 4


# ---- done -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [EOT, END])
@pytest.mark.parametrize("message", [to("user", "Hi."), to("self", "Hm."), call("ping"), HALF])
def test_a_turn_is_done_at_its_special_end(message, end):
    parser = atem.Parser(tools=TOOLS)
    for piece in pieces(message):
        parser.feed(piece)
        assert not parser.done
    parser.feed(Piece(end, special=True))
    assert parser.done


def test_a_turn_is_not_done_at_the_end_of_a_message():
    parser = atem.Parser(tools=TOOLS, tokenizer=TOKENIZER)
    for token in ids(turn(to("self", "Hm."), call("ping"), end=EOM)):
        parser.feed(token)
        assert not parser.done


def test_a_turn_of_text_is_done_once_no_text_can_belong_to_it():
    parser = atem.Parser()
    parser.feed(f"{to('user', 'a ')}{EOT}")
    parser.feed("b")
    assert not parser.done
    parser.feed(f"{EOT}{START}assistant")
    assert parser.done


def test_a_turn_is_done_at_the_header_of_another_role():
    parser = atem.Parser()
    parser.feed(f"{to('user', 'a')}{EOM}{START}user")
    assert parser.done


def test_a_closed_parser_is_done():
    parser = atem.Parser()
    parser.feed(to("user", "Hi."))
    assert not parser.done
    parser.close()
    assert parser.done


# ---- The reason that an engine gives -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "reason", "complete"),
    [
        ("stop", "stop", True),
        ("length", "stop", False),
        ("abort", "stop", False),
        ("stop", "length", False),
        ("length", "length", False),
        (None, "stop", True),
    ],
)
def test_a_step_says_how_the_stream_ended(finish, reason, complete):
    steps = [Step(piece=to("user", "Hi.")), Step(finish=finish)]
    found = read(steps, reason=reason)
    assert (found.complete, found.finish_reason) == (complete, "stop" if complete else "length")


def test_a_call_that_an_engine_cut_is_not_run():
    steps = [Step(piece=char) for char in HALF[:-1]] + [Step(piece=HALF[-1], finish="length")]
    assert (read(steps).calls, verdicts(read(steps))) == ((), ["incomplete"])


def test_an_asynchronous_source_may_yield_steps():
    async def steps():
        for piece in pieces(turn(call("ping"))):
            yield Step(piece=piece)

    async def gather():
        return [event async for event in atem.aparse_stream(steps(), tools=TOOLS)]

    assert calls(atem.collect(asyncio.run(gather()))) == [("ping", {})]


@pytest.mark.parametrize("text", [TURN, COUNTED, turn(call("ping"), call("save", body="x" * 50))])
def test_text_pieces_and_ids_of_a_turn_without_quotations_agree(text):
    expected = atem.parse(text, tools=TOOLS)
    assert read(pieces(text)) == expected
    assert read_ids(ids(text)) == expected
