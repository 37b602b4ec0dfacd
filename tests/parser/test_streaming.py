"""What is shown when: what is held, what is provisional, what is taken back (docs/parser.md, wire_format 8)."""

from __future__ import annotations

import json

import pytest

import atem
from tests.parser.spelling import (
    EOM,
    EOT,
    HALF,
    MESSAGE,
    NEXT,
    REPEATED,
    START,
    TOOLS,
    block,
    call,
    events,
    invoke,
    of_kind,
    parameter,
    rows,
    to,
    turn,
)
from tests.parser.strategies import STRING, tool

WRAPPER = "<atem:function_calls>\n"
CLOSER = "</atem:parameter>"
QUOTED = parameter("k", "v")


def feed(text, **options):
    """Each character with the rows that it brings."""
    options.setdefault("tools", TOOLS)
    parser = atem.Parser(**options)
    return [(char, rows(parser.feed(char))) for char in text], parser


def brings(parser, text):
    return rows([event for char in text for event in parser.feed(char)])


def opened(head, **options):
    """A parser that has read ``head``, whole."""
    options.setdefault("tools", TOOLS)
    parser = atem.Parser(**options)
    parser.feed(head)
    return parser


# ---- Text is held only while it may become framing ----------------------------------------------------


@pytest.mark.parametrize("recipient", ["user", "self", "commentary"])
def test_every_character_of_plain_text_is_released_at_once(recipient):
    name = "ReasoningDelta" if recipient == "self" else "ContentDelta"
    parser = opened(to(recipient, ""))
    text = "Ebb at nine; 5 > 4, {x}"
    for char in text.replace(" ", "") if recipient == "self" else text:
        assert rows(parser.feed(char)) == [(name, char)]


@pytest.mark.parametrize("marker", [EOM, EOT, "<|end_of_text|>"])
@pytest.mark.parametrize("recipient", ["user", "self"])
def test_part_of_a_terminator_is_held_and_released_by_what_disproves_it(recipient, marker):
    name = "ReasoningDelta" if recipient == "self" else "ContentDelta"
    for length in range(1, len(marker)):
        parser = opened(to(recipient, ""))
        assert brings(parser, marker[:length]) == []
        assert rows(parser.feed("#")) == [(name, f"{marker[:length]}#")]


@pytest.mark.parametrize("marker", [EOM, EOT])
def test_a_whole_terminator_is_held_until_the_next_visible_character(marker):
    parser = opened(to("user", ""))
    assert brings(parser, f"{marker} \n\t") == []
    assert rows(parser.feed("x")) == [("ContentDelta", f"{marker} \n\tx")]


def test_a_terminator_ends_its_message_once_a_header_is_certain():
    parser = opened(to("user", "a"))
    assert brings(parser, f"{EOM}{START}assistan") == []
    assert rows(parser.feed("t")) == [("MessageEnd", EOM)]


@pytest.mark.parametrize("text", [" to=x<b", "\nto=5 is", " to harbour", " t", "\n\n# "])
def test_part_of_a_header_is_held_in_reasoning_until_disproved(text):
    parser = opened(to("self", "I set"))
    found = brings(parser, text + "!")
    assert found == [("ReasoningDelta", text + "!")]


def test_a_bare_header_in_reasoning_waits_for_its_tag():
    parser = opened(to("self", "Hm."))
    assert brings(parser, f" to=ping{MESSAGE}\n<atem") == [("ReasoningDelta", " ")]
    assert ("MessageStart", "ping") in brings(parser, ":function_calls>")


@pytest.mark.parametrize(
    "text",
    [
        f" to={'x' * 400}",
        f"{START}assistant to={'x' * 400}",
        " " * 400,
        f"{to('user', '')}{EOM * 100}",
        f"{to('user', 'a')}{EOM}{' ' * 400}",
        f"{to('user', 'a')}{EOM}{START}assistant to={'x' * 400}",
        f"{to('user', 'a')}{EOM}{START}{' ' * 400}",
        f"{to('self', 'Hm.')} to={'x' * 400}",
        f"{to('self', 'Hm.')}{' ' * 400}",
        f"{to('self', 'Hm.')} to=ping{MESSAGE}{' ' * 400}",
        f"{to('self', 'Hm.')}{START}assistant{' ' * 400}",
        f"{to('user', '')}{'<' * 400}",
        f"{to('user', '')}{'<|eom|' * 80}",
        f"{to('user', '').removesuffix(MESSAGE)}{' ' * 244}{MESSAGE[:10]}",
    ],
)
@pytest.mark.parametrize("limit", [64, 256])
def test_held_text_never_exceeds_max_header(text, limit):
    parser = atem.Parser(tools=TOOLS, max_header=limit)
    shown = 0
    for fed, char in enumerate(text, 1):
        shown = max([shown, *(event.end for event in parser.feed(char))])
        assert fed - shown <= limit


def test_a_tag_is_held_for_1024_characters():
    parser = opened(to("ping", ""))
    assert brings(parser, f'<atem:invoke name="ping"{" " * 999}') == []
    assert rows(parser.feed(">")) == [("CallStart", 0, "ping")]


@pytest.mark.parametrize("held", ["<", EOM[:5], "to", f"to=ping{MESSAGE}", f"{START}assi"])
def test_closing_releases_whatever_is_held(held):
    parser = opened(to("self", "a "))
    assert brings(parser, held) == []
    assert rows(parser.close())[0] == ("ReasoningDelta", held)


# ---- A call while it is written -----------------------------------------------------------------------


def test_a_call_starts_at_the_last_character_of_its_tag():
    pairs, _ = feed(to("save", f'{WRAPPER}<atem:invoke name="save">'))
    brought = [(char, found) for char, found in pairs if found]
    assert brought == [(">", [("MessageStart", "save")]), (">", [("CallStart", 0, "save")])]


def test_a_call_starts_with_its_name_resolved_and_as_written():
    parser = opened(to("functions.ping", WRAPPER))
    [start] = parser.feed('<atem:invoke name="ping.ping">')
    assert (start.name, start.raw_name, start.recipient) == ("ping", "ping.ping", "functions.ping")
    assert start.id


def test_an_unknown_call_is_never_announced():
    pairs, parser = feed(turn(call("launch", site="Kourou")))
    found = [row for _, brought in pairs for row in brought] + rows(parser.close())
    assert [row[0] for row in found] == ["MessageStart", "CallRejected", "MessageEnd", "TurnEnd"]


IN_VALUE = to("save", '<atem:invoke name="save"><atem:parameter name="body">')


def shown(found):
    return "".join(event.json for event in of_kind(found, atem.ArgumentsDelta))


def test_the_first_character_of_a_string_is_shown_at_once():
    parser = opened(to("save", '<atem:invoke name="save">'))
    before = shown(parser.feed('<atem:parameter name="body">'))
    assert before + shown(parser.feed("E")) == '{"body": "E'


@pytest.mark.parametrize(
    "value",
    [
        "Ebb at nine",
        "a<b </atem:x>",
        "x" * 60,
        "</atem:paramete",
        f"{CLOSER}b{CLOSER}c",
        "潮\n\t\"'\\",
    ],
)
def test_at_most_seventeen_characters_of_a_string_are_held(value):
    parser = opened(IN_VALUE)
    text = ""
    for fed, char in enumerate(value, 1):
        text += shown(parser.feed(char))
        written = json.loads('{"body": "' + text.removeprefix('{"body": "') + '"}')["body"]
        assert value[:fed].startswith(written)
        assert fed - len(written) <= len(CLOSER) == 17


def test_a_closer_is_shown_as_text_once_nothing_legal_follows_it():
    parser = opened(IN_VALUE + "a")
    assert brings(parser, f"{CLOSER} \n") == []
    assert shown(parser.feed("b")) == f"{CLOSER} \\nb"


def test_the_end_of_a_string_waits_for_what_follows_its_closer():
    parser = opened(IN_VALUE + "a")
    assert brings(parser, f"{CLOSER}\n<atem:paramete") == []
    assert brings(parser, 'r name="path">b') == [("ArgumentsDelta", 0, '", "path": "b')]


def test_a_typed_value_is_shown_when_its_parameter_closes():
    parser = opened(to("count", '<atem:invoke name="count"><atem:parameter name="n">'))
    assert "1" not in shown([event for char in "12" for event in parser.feed(char)])
    closing = [
        event for char in f'{CLOSER}\n<atem:parameter name="body">' for event in parser.feed(char)
    ]
    assert "12" in shown(closing)


@pytest.mark.parametrize(
    ("declared", "value", "shown_json"),
    [
        ({"type": "integer"}, "12", "12"),
        ({"type": "boolean"}, "TRUE", "true"),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": "array"}, "[1,2]", "[1, 2]"),
        ({}, "5", "5"),
        ({"enum": ["5", 5]}, "5", "5"),
    ],
)
def test_no_part_of_a_value_is_shown_before_its_type_is_sure(declared, value, shown_json):
    tools = [tool("t", x=declared)]
    parser = opened(to("t", '<atem:invoke name="t"><atem:parameter name="x">'), tools=tools)
    assert shown([event for char in value for event in parser.feed(char)]) in ("", '{"x": ')
    rest = f"{CLOSER}</atem:invoke>{EOT}"
    found = of_kind([*parser.feed(rest), *parser.close()], (atem.ArgumentsDelta, atem.CallEnd))
    assert found[-1].call.arguments_json == f'{{"x": {shown_json}}}'


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"body": ""},
        {"body": '"\\\n\t\x00\u2028潮🌊</b>'},
        {"path": "a", "body": QUOTED + " x", "n": "5"},
        {"body": f"a{CLOSER}b", "path": f"{EOM}x"},
        {"path": "</atem:invoke>", "body": CLOSER},
    ],
)
def test_the_deltas_of_a_call_are_exactly_its_arguments(values):
    text = turn(call("save", **values))
    for tokens in ([text], text):
        found = list(atem.parse_stream(tokens, tools=TOOLS))
        [end] = of_kind(found, atem.CallEnd)
        deltas = [e.json for e in of_kind(found, atem.ArgumentsDelta) if e.index == end.index]
        assert "".join(deltas) == end.call.arguments_json
        assert json.loads(end.call.arguments_json) == end.call.arguments


def test_a_lone_surrogate_in_a_value_stays_as_it_is():
    [end] = of_kind(events(turn(call("save", body="a\ud800b"))), atem.CallEnd)
    assert (end.call.arguments_json, end.call.arguments) == (
        '{"body": "a\ud800b"}',
        {"body": "a\ud800b"},
    )


# ---- Nothing is final before the decision ---------------------------------------------------------------


def test_a_call_ends_when_its_message_is_decided_and_not_before():
    parser = opened(call("ping"))
    assert brings(parser, f"{EOM}{START}assistan") == []
    assert rows(parser.feed("t")) == [("CallEnd", 0, "ping", {}), ("MessageEnd", EOM)]


def test_a_call_at_the_end_of_the_stream_ends_when_it_is_closed():
    parser = opened(call("ping") + EOT)
    assert rows(parser.close()) == [
        ("CallEnd", 0, "ping", {}),
        ("MessageEnd", EOT),
        ("TurnEnd", "tool_calls", True),
    ]


def test_all_calls_of_a_message_end_together():
    parser = opened(to("ping", block(invoke("ping"), invoke("save", body="x"))))
    found = parser.feed(EOT) + parser.close()
    assert [event.index for event in of_kind(found, atem.CallEnd)] == [0, 1]


def test_an_announced_call_that_turns_out_malformed_is_taken_back_for_good():
    parser = opened(to("save", '<atem:invoke name="save"><atem:parameter name="body">x'))
    [rejected] = of_kind(
        parser.feed(f"{CLOSER}</atem:invoke> and </atem:invoke>{EOT}") + parser.close(),
        atem.CallRejected,
    )
    assert (rejected.index, rejected.rejected.reason) == (0, "malformed")
    assert rejected.rejected.id


def test_a_rejection_keeps_the_id_that_was_announced():
    found = events(to("save", '<atem:invoke name="save">'), reason="length")
    [start], [rejected] = of_kind(found, atem.CallStart), of_kind(found, atem.CallRejected)
    assert (rejected.index, rejected.rejected.id) == (start.index, start.id)


def test_a_rejection_of_what_was_not_announced_has_no_id():
    [rejected] = of_kind(events(turn(call("launch"))), atem.CallRejected)
    assert (rejected.index, rejected.rejected.id) == (None, None)


def test_a_finished_call_has_the_id_that_was_announced():
    found = events(turn(call("ping"), call("ping")))
    starts, ends = of_kind(found, atem.CallStart), of_kind(found, atem.CallEnd)
    assert [start.id for start in starts] == [end.call.id for end in ends]


def test_every_announced_call_is_ended_or_taken_back_exactly_once():
    for text in (
        turn(call("ping"), HALF, call("save", body=QUOTED), HALF),
        turn(to("ping", block(invoke("ping"), "x", invoke("ping")))),
        turn(to("ping", block(invoke("ping"), invoke("launch"), invoke("save", body="x")))),
    ):
        found = list(atem.parse_stream(text, tools=TOOLS))
        started = [event.index for event in of_kind(found, atem.CallStart)]
        settled = [
            event.index
            for event in of_kind(found, (atem.CallEnd, atem.CallRejected))
            if event.index is not None
        ]
        assert sorted(settled) == started == sorted(set(started))


# ---- Taken back without a verdict ------------------------------------------------------------------------


def test_a_repeated_parameter_takes_the_call_back_and_starts_it_afresh():
    found = rows(events(turn(to("save", block(REPEATED)))))
    assert found[:2] == [("MessageStart", "save"), ("CallStart", 0, "save")]
    assert found[3:] == [
        ("CallRejected", 0, None),
        ("CallStart", 1, "save"),
        ("ArgumentsDelta", 1, '{"body": "2", "path": "p"}'),
        ("CallEnd", 1, "save", {"body": "2", "path": "p"}),
        ("Problem", "duplicate_parameter"),
        ("MessageEnd", EOT),
        ("TurnEnd", "tool_calls", True),
    ]


def test_a_call_that_was_started_afresh_has_its_position_in_the_turn():
    found = atem.parse(turn(to("save", block(REPEATED)), call("ping")), tools=TOOLS)
    assert [one.index for one in found.calls] == [0, 1]
    assert found.rejected == ()


def test_a_second_reading_takes_the_call_back_and_starts_it_afresh():
    value = f"see {QUOTED}\n</atem:invoke> there"
    found = rows(events(turn(call("save", body=value))))
    assert [row for row in found if row[0] == "CallRejected"] == [("CallRejected", 0, None)]
    assert found[-5:] == [
        ("CallStart", 1, "save"),
        ("ArgumentsDelta", 1, json.dumps({"body": value})),
        ("CallEnd", 1, "save", {"body": value}),
        ("MessageEnd", EOT),
        ("TurnEnd", "tool_calls", True),
    ]


def test_an_undecided_message_takes_back_all_its_calls_and_falls_silent():
    body = f'{invoke("ping")}\n<atem:invoke name="save"><atem:parameter name="body">half'
    parser = atem.Parser(tools=TOOLS)
    parser.feed(to("ping", body))
    assert rows(parser.feed(f"{NEXT} to=user{MESSAGE}Hi.")) == [
        ("CallRejected", 0, None),
        ("CallRejected", 1, None),
        ("Problem", "undecided"),
    ]
    assert brings(parser, f"More.{NEXT}{call('ping')}{EOM}") == []
    settled = rows(parser.close())
    assert settled[:2] == [("CallStart", 2, "ping"), ("ArgumentsDelta", 2, "{}")]
    assert ("CallRejected", None, "incomplete") in settled
    assert ("ContentDelta", "Hi.More.") in settled
    assert [row[2:] for row in settled if row[0] == "CallEnd"] == [("ping", {}), ("ping", {})]


def test_an_undecided_message_that_is_confirmed_gives_its_call_a_fresh_index():
    value = f"turn: {NEXT}{call('ping')}"
    found = rows(events(turn(call("save", body=value))))
    assert found[3:] == [
        ("CallRejected", 0, None),
        ("Problem", "undecided"),
        ("CallStart", 1, "save"),
        ("ArgumentsDelta", 1, json.dumps({"body": value})),
        ("CallEnd", 1, "save", {"body": value}),
        ("MessageEnd", EOT),
        ("TurnEnd", "tool_calls", True),
    ]


def test_indices_are_never_used_twice():
    found = events(turn(HALF, call("ping"), call("save", body=QUOTED), to("save", block(REPEATED))))
    indices = [event.index for event in of_kind(found, atem.CallStart)]
    assert indices == sorted(set(indices))


# ---- arguments="whole" ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        turn(to("save", block(REPEATED))),
        turn(call("save", body=f"see {QUOTED}\n</atem:invoke> there")),
        turn(HALF, call("ping"), call("save", body="x")),
        turn(call("ping"), to("ping", block(invoke("ping"), "x", invoke("ping"))), call("ping")),
        turn(to("ping", block(invoke("launch"), invoke("ping")))),
    ],
)
def test_whole_arguments_take_nothing_back_and_skip_no_index(text):
    found = list(atem.parse_stream(text, tools=TOOLS, arguments="whole"))
    names = [type(event).__name__ for event in found]
    for place, name in enumerate(names):
        if name == "CallStart":
            assert names[place : place + 3] == ["CallStart", "ArgumentsDelta", "CallEnd"]
    assert [event.index for event in of_kind(found, atem.CallStart)] == list(
        range(names.count("CallEnd"))
    )
    assert all(event.index is None for event in of_kind(found, atem.CallRejected))
    streamed = atem.parse(text, tools=TOOLS)
    assert atem.collect(found).messages == streamed.messages


def test_whole_arguments_are_one_delta():
    found = events(turn(call("save", path="p", body="b" * 100)), arguments="whole")
    [delta], [end] = of_kind(found, atem.ArgumentsDelta), of_kind(found, atem.CallEnd)
    assert delta.json == end.call.arguments_json


# ---- Events ---------------------------------------------------------------------------------------------


def test_reasoning_is_joined_by_a_delta_with_an_empty_span():
    found = events(turn(to("self", "One."), to("self", ""), to("self", "Two.")))
    deltas = of_kind(found, atem.ReasoningDelta)
    assert [delta.text for delta in deltas] == ["One.", "\n", "Two."]
    assert deltas[1].start == deltas[1].end == deltas[2].start


def test_text_without_a_header_starts_a_message_without_text():
    assert events("Hi.")[0] == atem.MessageStart(None, 0, 0)


def test_the_span_of_a_call_covers_its_invoke():
    text = turn(call("save", body="b"))
    [one] = atem.parse(text, tools=TOOLS).calls
    start, end = one.span
    assert invoke("save", body="b") in text[start:end]
    assert "<|" not in text[start:end]


def test_events_are_immutable_and_compare_by_kind():
    delta = atem.ContentDelta("a", 0, 1)
    with pytest.raises(AttributeError):
        delta.text = "b"
    assert delta != atem.ReasoningDelta("a", 0, 1)


def test_the_last_event_is_the_end_of_the_turn_and_there_is_only_one():
    for text in ("", turn(call("ping")), turn(HALF, call("ping")), f"{to('user', 'a')}{EOT}b"):
        found = list(atem.parse_stream(text, tools=[tool("save", body=STRING)]))
        assert [isinstance(event, atem.TurnEnd) for event in found].index(True) == len(found) - 1
