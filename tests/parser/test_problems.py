"""Problems: which there are, how often they are told, and where they stand (docs/parser.md, "Problems")."""

from __future__ import annotations

import pytest

import atem
from tests.parser.spelling import (
    EOM,
    EOT,
    HALF,
    MESSAGE,
    PING,
    REPEATED,
    START,
    TOOLS,
    block,
    call,
    events,
    of_kind,
    rows,
    to,
    turn,
)

PROBLEMS = {
    "undecided": (turn(HALF, to("user", "Hi.")), 1),
    "bad_header": (f"{to('user', 'a')}{EOM}{START}assistant x", 1),
    "missing_terminator": (f"{call('ping')}{START}assistant to=user{MESSAGE}Hi.", 1),
    "text_after_turn": (f"{to('user', 'a')}{EOT}{START}user{MESSAGE}b{EOT}c", 1),
    "undeclared_channel": (turn(to("nobody", "x"), to("nobody", "y")), 2),
    "duplicate_parameter": (turn(to("save", block(REPEATED))), 1),
    "recipient_mismatch": (turn(to("save", PING)), 1),
    "untrusted": (turn(*[HALF] * 4, call("ping"), call("ping")), 1),
}


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_problem_has_its_code_and_a_sentence(code):
    text, times = PROBLEMS[code]
    problems = [event for event in events(text) if isinstance(event, atem.Problem)]
    found = [problem for problem in problems if problem.code == code]
    assert len(found) == times
    assert all(problem.message for problem in problems)
    assert {problem.code for problem in problems} <= {code, "undecided"}


def test_a_call_that_is_too_long_is_a_problem():
    found = rows(events(turn(call("save", body="x" * 300)), max_call_chars=200))
    assert [row for row in found if row[0] == "Problem"] == [("Problem", "call_too_long")]
    assert [row[2] for row in found if row[0] == "CallRejected"] == ["malformed"]


@pytest.mark.parametrize(
    "code", ["undeclared_channel", "duplicate_parameter", "recipient_mismatch"]
)
def test_a_problem_of_a_tool_message_stands_behind_its_calls_and_before_its_end(code):
    found = rows(events(PROBLEMS[code][0]))
    place = found.index(("Problem", code))
    assert found[place + 1][0] == "MessageEnd"
    assert found[place - 1][0] in ("CallEnd", "MessageStart")


def test_a_missing_terminator_stands_behind_the_end_of_its_message():
    found = rows(events(PROBLEMS["missing_terminator"][0]))
    place = found.index(("Problem", "missing_terminator"))
    assert found[place - 1 : place + 2] == [
        ("MessageEnd", None),
        ("Problem", "missing_terminator"),
        ("MessageStart", "user"),
    ]


@pytest.mark.parametrize(
    "header", [f"{START}assistant to=user{MESSAGE}", f" to=ping{MESSAGE}"], ids=["framed", "bare"]
)
def test_reasoning_that_a_header_ends_lacks_its_terminator(header):
    found = rows(events(to("self", "Hm.") + header + (PING if "ping" in header else "Hi.") + EOT))
    place = found.index(("Problem", "missing_terminator"))
    assert found[place - 1] == ("MessageEnd", None)


def test_text_after_the_turn_is_reported_behind_the_last_message():
    found = rows(events(PROBLEMS["text_after_turn"][0]))
    assert found[-3:] == [
        ("MessageEnd", EOT),
        ("Problem", "text_after_turn"),
        ("TurnEnd", "stop", True),
    ]


@pytest.mark.parametrize("text", [text for text, _ in PROBLEMS.values()])
def test_no_problem_stands_between_two_events_of_a_call(text):
    found = list(atem.parse_stream(text, tools=TOOLS))
    for place, event in enumerate(found):
        if isinstance(event, atem.Problem):
            open_calls = {e.index for e in of_kind(found[:place], atem.CallStart)} - {
                e.index for e in of_kind(found[:place], (atem.CallEnd, atem.CallRejected))
            }
            assert not open_calls, event


def test_a_value_that_can_be_read_in_two_whole_ways_is_told():
    pair = (
        '<atem:parameter name="a">1</atem:parameter>\n<atem:parameter name="b">2</atem:parameter>'
    )
    told = [e.code for e in of_kind(events(turn(call("save", body=pair))), atem.Problem)]
    assert told == ["ambiguous_value"]


def test_a_quoted_block_that_one_reading_only_can_read_is_no_problem():
    quoted = f"See:\n{PING}\nthere."
    assert of_kind(events(turn(call("save", body=quoted))), atem.Problem) == []
