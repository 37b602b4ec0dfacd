"""Every wire case comes out as it says, however its input is cut.

Rules: expectations come from the cases alone (tests/cases/README.md says how to compare).
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.parser.folding import checked, examples, patience, places, sliced
from tests.parser.wire_cases import CASES, EVERY_CASE, assert_answer, reason

pytestmark = patience


def assert_as_expected(case, tokens):
    events = atem.parse_stream(tokens, tools=case["tools"], reason=reason(case))
    turn = atem.collect(checked(events, case["input"]))
    assert_answer(
        case,
        reasoning=turn.reasoning,
        content=turn.content,
        calls=[(call.name, call.arguments) for call in turn.calls],
        rejected=[rejected.reason for rejected in turn.rejected],
        complete=turn.complete,
    )


def test_no_case_leaves_all_its_fields_unchecked():
    assert len(CASES) >= 154
    assert all(any(value is not None for value in case["expect"].values()) for case in CASES)


@EVERY_CASE
def test_a_case_read_whole(case):
    assert_as_expected(case, [case["input"]])


@EVERY_CASE
def test_a_case_read_one_character_at_a_time(case):
    assert_as_expected(case, case["input"])


@EVERY_CASE
def test_a_case_read_one_byte_at_a_time(case):
    assert_as_expected(case, [bytes([octet]) for octet in case["input"].encode()])


@examples(500)
@given(st.sampled_from(CASES), places)
def test_a_case_read_in_any_parts(case, cuts):
    assert_as_expected(case, sliced(case["input"], cuts))


@EVERY_CASE
def test_a_case_read_by_parse_is_the_same_turn(case):
    options = {"tools": case["tools"], "reason": reason(case)}
    turn = atem.parse(case["input"], **options)
    assert turn == atem.collect(atem.parse_stream(case["input"], **options))
    whole = turn.finish_reason == ("tool_calls" if turn.calls else "stop")
    assert whole is turn.complete
