"""The laws of the parser, for whatever is drawn: chunking, spans, protocol, no exception.

Rules: the public interface alone; what a text means is the oracle's to say
(tests/parser/oracle.py) or is known because the text was built from it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import atem
from atem import Piece
from tests.parser import strategies as some
from tests.parser.folding import (
    as_pieces,
    checked,
    examples,
    facts,
    merged,
    patience,
    places,
    runs,
    sliced,
    trained,
    without_tokens,
)
from tests.parser.oracle import read
from tests.parser.strategies import MARKERS, STRING, reasons, soups, turns

pytestmark = patience
drawn = turns() | soups()
any_text = st.text(alphabet=st.characters(exclude_categories=[]), max_size=20)

# ---- Chunking is invisible, and spans cover the input once ----------------------------------


@examples(600)
@given(drawn, reasons, places)
def test_events_and_spans_do_not_depend_on_the_cuts(turn, reason, cuts):
    text, tools = turn
    options = {"tools": tools, "reason": reason}
    whole = merged(checked(atem.parse_stream([text], **options), text))
    octets = text.encode()
    for parts in (
        list(text),
        sliced(text, cuts),
        [bytes([octet]) for octet in octets],
        sliced(octets, cuts),
        [part.encode() if len(part) % 2 else part for part in sliced(text, cuts)],
    ):
        assert merged(checked(atem.parse_stream(parts, **options), text)) == whole


OPTIONS: list[dict[str, Any]] = [
    {"arguments": "whole"},
    {"unknown": "forward"},
    {"unknown": "content"},
    {"unknown": "content", "arguments": "whole"},
    {"recover": ["reasoning", "headerless"]},
    {"recover": ["reasoning", "glued"]},
    {"recover": ["headerless", "glued"], "unknown": "content"},
    {"recover": set()},
    {"profile": "spark"},
    {"validate": "reject"},
    {"validate": "off", "names": "unique-leaf"},
    {"names": "exact", "unknown": "forward"},
    {"channel": "note"},
    {"channel": "self"},
    {"strict_recipient": True},
    {"one_invoke_per_message": True},
    {"framed": True},
    {"max_header": 32},
    {"max_call_chars": 90},
    {"max_call_chars": 90, "recover": {"headerless"}, "arguments": "whole"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@examples(80)
@given(drawn, reasons, places)
def test_chunking_is_invisible_under_every_option(options, turn, reason, cuts):
    text, tools = turn
    assume(tools or "headerless" not in options.get("recover", ()))
    options = {"tools": tools, "reason": reason, **options}
    whole = merged(checked(atem.parse_stream([text], **options), text))
    for parts in (list(text), sliced(text, cuts)):
        assert merged(checked(atem.parse_stream(parts, **options), text)) == whole


def pushed(tokens, reason, **options):
    """Events, and the unknown calls that were raised, which interrupt no parser."""
    parser, events, raised = atem.Parser(**options), [], []

    def take(step, *arguments):
        try:
            events.extend(step(*arguments))
        except atem.UnknownTool as error:
            raised.append((error.rejected.raw_name, error.rejected.span))
            if step == parser.close:
                take(step, *arguments)

    for token in tokens:
        take(parser.feed, token)
    take(parser.close, reason)
    while remaining := parser.close(reason):
        events.extend(remaining)
    return events, raised


@examples(300)
@given(drawn, reasons, places)
def test_unknown_tools_that_are_raised_are_those_that_are_rejected(turn, reason, cuts):
    text, tools = turn
    told = atem.collect(atem.parse_stream([text], tools=tools, reason=reason))
    unknown = [(r.raw_name, r.span) for r in told.rejected if r.reason == "unknown_tool"]
    whole = merged(checked(atem.parse_stream([text], tools=tools, reason=reason), text))
    for parts in ([text], list(text), sliced(text, cuts)):
        events, raised = pushed(parts, reason, tools=tools, unknown="raise")
        assert raised == unknown
        assert merged(checked(events, text)) == whole


@examples(400)
@given(drawn, reasons, places, st.data())
def test_chunking_is_invisible_where_provenance_is_known(turn, reason, cuts, data):
    text, tools = turn
    marks = [data.draw(st.booleans()) and part in MARKERS for part in runs(text)]
    fine = [
        Piece(piece, special=mark)
        for part, mark in zip(runs(text), marks, strict=True)
        for piece in ([part] if mark else sliced(part, cuts))
    ]
    coarse: list[Piece] = []
    for part, mark in zip(runs(text), marks, strict=True):
        if mark or not coarse or coarse[-1].special:
            coarse.append(Piece(part, special=mark))
        else:
            coarse.append(Piece(coarse.pop().text + part))
    options = {"tools": tools, "reason": reason}
    one, other = (checked(atem.parse_stream(p, **options), text) for p in (coarse, fine))
    assert without_tokens(merged(one)) == without_tokens(merged(other))


@examples(300)
@given(soups(), st.binary(max_size=6), st.integers(0, 200), places, reasons)
def test_bytes_that_are_no_text_are_replaced_wherever_they_are_cut(turn, noise, at, cuts, reason):
    text, tools = turn
    octets = text.encode()[:at] + noise + text.encode()[at:]
    decoded = octets.decode("utf-8", "replace")
    options = {"tools": tools, "reason": reason}
    whole = merged(checked(atem.parse_stream([decoded], **options), decoded))
    for parts in ([octets], [bytes([octet]) for octet in octets], sliced(octets, cuts)):
        assert merged(checked(atem.parse_stream(parts, **options), decoded)) == whole


@given(turns(), reasons)
def test_every_character_of_reasoning_is_a_token_where_every_character_is_one(turn, reason):
    text, tools = turn
    pieces = [
        piece
        for part in as_pieces(text)
        for piece in ([part] if part.special else map(Piece, part.text))
    ]
    for message in messages_of(atem.parse_stream(pieces, tools=tools, reason=reason)):
        start, *inside, end = message
        if start.recipient in ("self", "user"):
            said = "".join(event.text for event in inside if hasattr(event, "text"))
            said = said[1:] if is_joined(inside) else said
            assert end.tokens == sum(1 if run in MARKERS else len(run) for run in runs(said))


def messages_of(events):
    """The events of each message."""
    found: list[list[Any]] = []
    inside = False
    for event in events:
        if isinstance(event, atem.MessageStart):
            found.append([])
            inside = True
        if inside:
            found[-1].append(event)
        inside = inside and not isinstance(event, atem.MessageEnd)
    return found


def is_joined(inside):
    """Whether the newline that joins two bodies stands before this one."""
    first = next((e for e in inside if isinstance(e, atem.ReasoningDelta)), None)
    return first is not None and first.start == first.end


# ---- Agreement with a reading that was written independently ---------------------------------


@examples(2000)
@given(drawn, reasons, places)
def test_a_turn_is_what_the_one_shot_reading_says(turn, reason, cuts):
    text, tools = turn
    said = read(text, tools, reason)
    expected = repr((said.reasoning, said.content, said.calls, said.rejected, said.complete))
    assert facts(atem.parse(sliced(text, cuts), tools=tools, reason=reason)) == expected


@examples(400)
@given(drawn, reasons)
def test_a_string_argument_stands_between_its_tags_as_it_is(turn, reason):
    text, tools = turn
    strings = {
        t["function"]["name"]: {
            key
            for key, schema in t["function"]["parameters"]["properties"].items()
            if schema == STRING
        }
        for t in tools
    }
    for call in atem.parse(text, tools=tools, reason=reason).calls:
        for key in strings[call.name] & call.arguments.keys():
            assert f">{call.arguments[key]}</atem:parameter>" in text[slice(*call.span)]


# ---- Text, pieces and ids ---------------------------------------------------------------------


TOKENIZER = trained()


def unmarked(text):
    """``text`` with every marker spoilt."""
    for marker in MARKERS:
        text = text.replace(marker, marker.upper())
    return text


@st.composite
def unquoted_turns(draw):
    """Turns in which every message ends with a terminator and no marker is quoted."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(some.kinds)
        header = draw(st.sampled_from((" to=self", " to=user", "", " to=commentary")))
        if kind == "call":
            header = draw(some.names.map(" to={}".format))
        body = draw(some.bodies[kind].map(unmarked))
        parts.append(f"{header}<|message|>{body}")
    return some.BOUNDARY.join(parts) + "<|eot|>", draw(some.tool_lists())


@examples(400)
@given(unquoted_turns())
def test_text_pieces_and_ids_give_one_turn_where_no_marker_is_quoted(turn):
    text, tools = turn
    # An undecided message is one whose end text alone can't tell.
    assume("undecided" not in read(text, tools).problems)
    ids = TOKENIZER.encode(text).ids
    told = atem.parse(text, tools=tools)
    for tokens in (ids, as_pieces(text)):
        events = checked(atem.parse_stream(tokens, tools=tools, tokenizer=TOKENIZER), text)
        assert atem.collect(events) == told


quoting = st.lists(
    some.hostile | some.words | st.just(some.transcript("ping", None, "<|eot|>")), max_size=5
).map("".join)


@examples(300)
@given(
    st.lists(st.tuples(st.sampled_from(("self", "user")), quoting), min_size=1, max_size=4),
    places,
)
def test_nothing_quoted_in_plain_pieces_is_framing(messages, cuts):
    tokens = []
    for recipient, body in messages:
        tokens += [Piece("<|start|>", special=True), Piece(f"assistant to={recipient}")]
        tokens += [Piece("<|message|>", special=True), *map(Piece, sliced(body, cuts))]
        tokens += [Piece("<|eom|>", special=True)]
    turn = atem.parse(tokens, tools=list(some.TOOLS))
    assert [(m.recipient, m.content) for m in turn.messages] == messages
    assert turn.content == "".join(body for to, body in messages if to == "user")
    assert turn.reasoning == "\n".join(body for to, body in messages if to == "self" and body)
    assert (turn.calls, turn.rejected, turn.problems) == ((), (), ())


# ---- No input raises --------------------------------------------------------------------------

anything = st.lists(
    any_text | some.hostile | some.headers | some.tags | some.markers, max_size=12
).map("".join)


@examples(400)
@given(anything, some.tool_lists(), reasons, places)
def test_any_text_gives_events_and_one_end(text, tools, reason, cuts):
    whole = merged(checked(atem.parse_stream([text], tools=tools, reason=reason), text))
    parts = sliced(text, cuts)
    assert merged(checked(atem.parse_stream(parts, tools=tools, reason=reason), text)) == whole


@given(st.binary(max_size=200), reasons)
def test_any_bytes_give_events_and_one_end(octets, reason):
    text = octets.decode("utf-8", "replace")
    checked(atem.parse_stream([octets], tools=list(some.TOOLS), reason=reason), text)


specials = st.sampled_from([Piece(marker, special=True) for marker in MARKERS])


@examples(200)
@given(st.lists(specials | anything, max_size=12))
def test_any_mixture_of_special_tokens_and_text_gives_events(tokens):
    text = "".join(token.text if isinstance(token, Piece) else token for token in tokens)
    checked(atem.parse_stream(tokens, tools=list(some.TOOLS)), text)


QUOTED = '<atem:parameter name="k">v</atem:parameter></atem:invoke>'
ENDS = (
    *("", " to=self<|message|>", " to=user<|message|>", " to=note<|message|>", " to=x<|message|>"),
    *(" to=user<|message|>x<|eom|>", " to=self<|message|>x\nto=note<|message|>"),
    *(some.OPEN_VALUE, f"{some.OPEN_VALUE}x</atem:parameter>", some.OPEN_VALUE + QUOTED),
    *(f'{some.OPEN_VALUE}<atem:parameter name="k">', f"{some.OPEN_VALUE}<atem:parameter "),
    *(f"{some.OPEN_VALUE}{QUOTED}<atem:parameter ", f"{some.OPEN_VALUE}{QUOTED} x "),
    *(f"{some.OPEN_VALUE}x</atem:parameter></atem:invoke>", f"{some.OPEN_VALUE}<|eom|>"),
    *(f"{some.OPEN_VALUE}x</atem:parameter></atem:invoke> x", f"{some.OPEN_VALUE}<|eom|>{QUOTED}"),
)


@pytest.mark.parametrize("text", ENDS)
@pytest.mark.parametrize("literal", [*MARKERS, *some.TAGS])
def test_a_stream_may_end_inside_any_marker_or_tag(text, literal):
    for end in range(1, len(literal) + 1):
        cut = text + literal[:end]
        for reason in ("stop", "length"):
            options = {"tools": list(some.TOOLS), "reason": reason}
            whole = merged(checked(atem.parse_stream([cut], **options), cut))
            assert merged(checked(atem.parse_stream(cut, **options), cut)) == whole


def typed_call(*pairs):
    body = "".join(f'<atem:parameter name="{k}">{v}</atem:parameter>\n' for k, v in pairs)
    call = f'<atem:function_calls>\n<atem:invoke name="typed">\n{body}</atem:invoke>\n'
    return f" to=typed<|message|>{call}</atem:function_calls><|eot|>"


HOSTILE = {
    "open brackets": typed_call(("a", "[" * 100_000)),
    "open objects": typed_call(("x", '{"a":' * 20_000)),
    "digits": typed_call(("i", "7" * 10_000), ("n", "-" + "7" * 10_000), ("x", "7" * 10_000)),
    "digits in an array": typed_call(("a", "[" + "7" * 10_000 + "]")),
    "exponents": typed_call(("i", "1e999999999"), ("n", "1e-999999999"), ("i", "1e4299")),
    "parameters": typed_call(*((f"k{n}", n) for n in range(5_000))),
    "one parameter repeated": typed_call(*(("body", n) for n in range(5_000))),
    "openers in a value": typed_call(("body", '<atem:parameter name="k">' * 5_000)),
    "closers in a value": typed_call(("body", "</atem:parameter>" * 5_000)),
    "closers that count": typed_call(("body", "</atem:parameter></atem:invoke>" * 3_000)),
    "invokes": " to=ping<|message|>" + '<atem:invoke name="ping"></atem:invoke>' * 2_000,
    "open invokes": " to=ping<|message|>" + '<atem:invoke name="ping">' * 5_000,
    "open blocks": " to=ping<|message|>" + "<atem:function_calls>" * 5_000,
    "half tags": " to=ping<|message|>" + "<atem:invoke " * 10_000,
    "one long tag": " to=ping<|message|><atem:invoke " + "x" * 100_000,
    "terminators": "<|eom|>" * 10_000,
    "terminators in a value": typed_call(("body", "<|eom|> " * 5_000)),
    "boundaries in a value": typed_call(("body", some.BOUNDARY * 2_000)),
    "headers in a value": typed_call(
        ("body", "<|start|>assistant to=ping<|message|><atem:" * 2_000)
    ),
    "starts": "<|start|>" * 10_000,
    "messages": some.BOUNDARY.join([" to=user<|message|>x"] * 3_000),
    "abandoned calls": some.BOUNDARY.join(
        [' to=note<|message|><atem:invoke name="note"><atem:parameter name="body">x'] * 2_000
    ),
    "bare headers": " to=self<|message|>" + " to=ping<|message|>" * 5_000,
    "framed headers": " to=self<|message|>" + "<|start|>assistant to=ping<|message|> " * 3_000,
    "angles": " to=note<|message|>" + "<" * 100_000,
    "spaces": " " * 100_000,
    "a long header": " to=" + "x" * 100_000,
    "zeros": "\x00" * 100_000,
    "lone surrogates": typed_call(("body", "\ud800" * 10_000), ("x", '"\udfff"')),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("reason", ["stop", "length", "abort"])
def test_a_hostile_input_gives_events_in_any_chunking(text, reason):
    options = {"tools": list(some.TOOLS), "reason": reason}
    whole = merged(checked(atem.parse_stream([text], **options), text))
    parts = sliced(text, range(0, len(text), 7))
    assert merged(checked(atem.parse_stream(parts, **options), text)) == whole


# ---- The ways to call the parser ----------------------------------------------------------------


def counted():
    """A source of ids that two parsers can share the sequence of."""
    numbers = iter(range(10**6))
    return lambda: f"call_{next(numbers)}"


@examples(200)
@given(drawn, reasons, places)
def test_every_interface_tells_the_same_events(turn, reason, cuts):
    text, tools = turn
    parts = sliced(text, cuts)

    async def tokens():
        for part in parts:
            yield part

    async def told():
        events = atem.aparse_stream(tokens(), tools=tools, reason=reason, new_id=counted())
        return [event async for event in events]

    parser = atem.Parser(tools=tools, new_id=counted())
    push = [event for part in parts for event in parser.feed(part)]
    push += parser.close(reason)
    pulled = list(atem.parse_stream(parts, tools=tools, reason=reason, new_id=counted()))
    asked = atem.parse_stream(parts, tools=tools, reason=lambda: reason, new_id=counted())
    assert push == pulled == asyncio.run(told()) == list(asked)
    assert atem.parse(parts, tools=tools, reason=reason) == atem.collect(pulled)


@given(drawn, reasons)
def test_abort_means_length(turn, reason):
    text, tools = turn
    one, other = (atem.parse(text, tools=tools, reason=why) for why in ("abort", "length"))
    assert one == other


@given(drawn, reasons)
def test_a_closed_parser_has_no_more_to_say_and_takes_no_more(turn, reason):
    text, tools = turn
    parser = atem.Parser(tools=tools)
    parser.feed(text)
    assert isinstance(parser.close(reason)[-1], atem.TurnEnd)
    assert parser.done
    assert parser.close(reason) == []
    for token in ("", "x", b"", Piece("x")):
        with pytest.raises(atem.ParserClosed):
            parser.feed(token)
    assert parser.close("stop") == []


@pytest.mark.parametrize("marker", ["<|eot|>", "<|end_of_text|>"])
@pytest.mark.parametrize("header", [" to=self", " to=user", "", " to=ping", " to=nobody"])
def test_a_special_end_of_turn_is_the_end_at_once(header, marker):
    parser = atem.Parser(tools=list(some.TOOLS))
    parser.feed(Piece(header))
    parser.feed(Piece("<|message|>", special=True))
    parser.feed(Piece("x"))
    assert not parser.done
    parser.feed(Piece(marker, special=True))
    assert parser.done


@pytest.mark.parametrize("token", ["<|eot|>", Piece("<|eot|>"), Piece("<|eom|>", special=True)])
def test_what_may_be_quoted_or_ends_no_turn_leaves_the_parser_at_work(token):
    parser = atem.Parser()
    parser.feed(" to=user<|message|>x")
    parser.feed(token)
    assert not parser.done


@examples(300)
@given(drawn, reasons, st.booleans())
def test_what_follows_done_changes_nothing(turn, reason, special):
    text, tools = turn
    tokens = as_pieces(text) if special else list(text)
    parser = atem.Parser(tools=tools)
    events, done = [], []
    for token in tokens:
        events += parser.feed(token)
        done.append(parser.done)
    events += parser.close(reason)
    assert done == sorted(done)
    if any(done):
        before = atem.parse(tokens[: done.index(True) + 1], tools=tools, reason=reason)
        assert facts(before) == facts(atem.collect(events))
