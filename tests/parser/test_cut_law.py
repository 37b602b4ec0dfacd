"""A stream that was cut runs nothing that the whole turn would not (wire_format 4).

Rules: what a turn says is known because it was built from its calls; every value, answer
and thought may quote calls to ``wipe``, which no turn makes. A value is one that the format
can carry (``carried`` or whole blocks); what it can't carry is in test_round_trip.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.parser import strategies as some
from tests.parser.folding import (
    CLOSER,
    as_pieces,
    balanced,
    carried,
    ends_no_message,
    examples,
    patience,
    ran,
    stays_reasoning,
)
from tests.parser.oracle_bodies import BodyReader
from tests.parser.strategies import STRING, quoted_block, soups, tool, transcript, turns
from tests.parser.wire_cases import EVERY_CASE

pytestmark = patience
TOOLS = [*some.TOOLS, tool("wipe", body=STRING)]

# ---- Values that the format can carry (wire_format 5.5) ----------------------------------------

loose = st.lists(some.hostile | some.words | some.scalars, max_size=4).map(" ".join).filter(carried)
quotations = st.sampled_from(
    (
        quoted_block("wipe", "x"),
        quoted_block("wipe"),
        transcript("wipe", "x", ""),
        transcript("wipe", "x", "<|eot|>"),
        transcript("wipe", "x", "<|eom|><|start|>assistant to=user<|message|>done<|eot|>"),
        "<|start|>user<|message|>" + quoted_block("wipe", quoted_block("wipe", "x")),
    )
)
# Whole blocks nest: whatever reading 1 makes of them, it fails behind the last of them.
nests = st.lists(quotations | some.words, min_size=1, max_size=3).map(" \n".join)


# ---- Turns with known calls --------------------------------------------------------------------


class Made(NamedTuple):
    """A message, and what it calls."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    ends: tuple[int, ...] = ()


def made_call(invokes: list[tuple[str, dict[str, str]]]) -> Made:
    """A message with these calls; ``ends`` are the places behind their ``</atem:invoke>``."""
    text, ends = f" to={invokes[0][0]}<|message|><atem:function_calls>\n", []
    for name, arguments in invokes:
        values = "".join(
            f'<atem:parameter name="{key}">{value}{CLOSER}\n' for key, value in arguments.items()
        )
        text += f'<atem:invoke name="{name}">\n{values}</atem:invoke>'
        ends.append(len(text))
        text += "\n"
    return Made(text + "</atem:function_calls>", tuple(invokes), tuple(ends))


def calls(values):
    """Messages whose calls take such values."""
    arguments = st.dictionaries(st.sampled_from(("title", "body")), values, max_size=2)
    invoke = st.tuples(st.just("note"), arguments) | st.just(("ping", {}))
    return st.lists(invoke, min_size=1, max_size=2).map(made_call)


QUOTED = (
    quoted_block("wipe", "x"),
    f"to=wipe {quoted_block('wipe')}",
    "<|start|>assistant to=wipe",
    "<|eom|>, then <|start|>, then",
    "<|eot|>",
    "<|message|>",
    "<|eo",
    CLOSER,
    transcript("wipe", "x", ""),
    f"<|start|>assistant to=wipe<|message|>{quoted_block('wipe', 'x')}",
    f"\nto=wipe<|message|>{quoted_block('wipe', 'x')}",
)


def anything(_text):
    return True


def spoken(header, fits):
    """Messages of text that fits."""
    pieces = st.sampled_from(QUOTED) | some.words
    bodies = st.lists(pieces, max_size=4).map(" ".join).filter(fits)
    return bodies.map(lambda body: Made(f" to={header}<|message|>{body}"))


spoke = spoken("user", ends_no_message) | spoken("commentary", ends_no_message)
# A header in reasoning that a block follows is the documented guess of wire_format 5.3.
thought = spoken("self", stays_reasoning)
whole_calls = calls(loose.filter(balanced)) | calls(nests)


@st.composite
def made_turns(draw, last=None):
    """Some messages, and the last one."""
    kinds = st.one_of(whole_calls, whole_calls, spoke, thought)
    before = draw(st.lists(kinds, max_size=2))
    return [*before, draw(kinds if last is None else last)]


def joined(messages):
    """The text of a turn, its calls, and the place behind each."""
    text, found = "", []
    for message in messages:
        text += some.BOUNDARY if text else ""
        found += [
            (repr(call), len(text) + end)
            for call, end in zip(message.calls, message.ends, strict=True)
        ]
        text += message.text
    return text, found


@examples(300)
@given(made_turns())
def test_a_whole_turn_runs_the_calls_it_was_made_of(messages):
    text, found = joined(messages)
    for whole in (f"{text}<|eot|>", f"{text}<|eom|>"):
        assert ran(atem.parse(whole, tools=TOOLS)) == [call for call, _ in found]


@examples(300)
@given(made_turns())
def test_a_cut_behind_another_message_loses_no_call(messages):
    text, found = joined(messages)
    text += f"{some.BOUNDARY} to=user<|message|>And"
    assert ran(atem.parse(text, tools=TOOLS, reason="length")) == [call for call, _ in found]


def assert_prefixes(text, found, tokens_of):
    for end in range(len(text) + 1):
        turn = atem.parse(tokens_of(text[:end]), tools=TOOLS, reason="length")
        closed = [call for call, place in found if place <= end]
        assert ran(turn) == closed[: len(turn.calls)], text[:end]
        assert (turn.complete, turn.finish_reason) == (False, "length")


@examples(60)
@given(made_turns())
def test_a_cut_anywhere_runs_only_calls_that_were_closed(messages):
    text, found = joined(messages)
    assert_prefixes(f"{text}<|eot|>", found, lambda part: [part])


@examples(25)
@given(made_turns(last=calls(loose.filter(lambda value: "<|" not in value))))
def test_nor_does_a_cut_in_a_last_message_that_is_not_balanced(messages):
    text, found = joined(messages)
    assert ran(atem.parse(f"{text}<|eot|>", tools=TOOLS)) == [call for call, _ in found]
    assert_prefixes(f"{text}<|eot|>", found, lambda part: [part])


undecided = calls(st.just(f"of {transcript('wipe', 'x', '')} more"))


@examples(100)
@given(made_turns(last=undecided.filter(lambda message: "wipe" in message.text)))
def test_nothing_runs_of_a_last_message_that_was_undecided_when_it_was_cut(messages):
    text, _ = joined(messages)
    _, found = joined(messages[:-1])
    for end in ("<|eot|>", "<|eom|>\n", ""):
        turn = atem.parse(f"{text}{end}", tools=TOOLS, reason="length")
        assert ran(turn) == [call for call, _ in found]


@examples(20)
@given(
    st.lists(
        calls(loose | nests.filter(carried)) | spoken("user", anything) | spoken("self", anything),
        min_size=1,
    )
)
def test_nor_does_a_cut_where_provenance_is_known(messages):
    pieces, found = [], []
    for message in messages[:3]:
        header, body = message.text.split("<|message|>", 1)
        pieces += [*as_pieces(f"<|start|>assistant{header}<|message|>"), atem.Piece(body)]
        found += map(repr, message.calls)
        pieces += [atem.Piece("<|eom|>", special=True)]
    assert ran(atem.parse(pieces, tools=TOOLS)) == found
    for count, piece in enumerate(pieces):
        for end in range(0 if piece.special else len(piece.text)):
            cut = [*pieces[:count], atem.Piece(piece.text[:end])]
            turn = atem.parse(cut, tools=TOOLS, reason="length")
            assert ran(turn) == found[: len(turn.calls)]


# ---- Whatever is drawn: the rule itself ---------------------------------------------------------


def closed_alike(text, events):
    """Whether both readings of wire_format 5.5 close each call of a cut turn at the same place."""
    at, found = 0, []
    for event in events:
        if isinstance(event, atem.MessageStart):
            at = event.end
        if isinstance(event, atem.CallEnd):
            readings = [
                BodyReader(text, at, len(text), nested=nested).read() for nested in (False, True)
            ]
            spans = [{(i.start, i.end) for i in reading.invokes} for reading in readings]
            found.append(event.call.span in spans[0] & spans[1])
    return found


def assert_cut_rule(text, tools, *, strictly=False):
    whole = ran(atem.parse(text, tools=tools))
    for end in range(len(text)):
        events = list(atem.parse_stream([text[:end]], tools=tools, reason="length"))
        turn = atem.collect(events)
        assert not turn.complete
        kept = ran(turn)
        if kept != whole[: len(kept)]:
            assert not strictly
            same = [a == b for a, b in zip(kept, [*whole, *kept], strict=False)]
            alike = closed_alike(text[:end], events)
            assert all(is_same or is_closed for is_same, is_closed in zip(same, alike, strict=True))


# A later tag of its message is malformed, so the whole turn does not run what a cut one may.
LATER_MALFORMED = "tag-malformed-second-invoke"


@EVERY_CASE
def test_a_wire_case_cut_anywhere_runs_a_prefix_of_its_calls(case):
    assert_cut_rule(case["input"], case["tools"], strictly=case["id"] != LATER_MALFORMED)


@examples(100)
@given(turns() | soups())
def test_a_drawn_turn_cut_anywhere_runs_only_what_the_cut_rule_admits(turn):
    assert_cut_rule(*turn)
