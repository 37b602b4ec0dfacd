"""Every wire case comes out as it says, however its input is cut.

Rules: expectations come from the cases alone (tests/cases/README.md says how to compare).
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.parser.folding import CASES, REASONS, checked, examples, patience, places, sliced

pytestmark = patience
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


def assert_as_expected(case, tokens):
    options = {"tools": case["tools"], "reason": REASONS[case["stop"]]}
    turn = atem.collect(checked(atem.parse_stream(tokens, **options), case["input"]))
    calls = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    rejected = [rejected.reason for rejected in turn.rejected]
    found = {
        "reasoning": turn.reasoning,
        "content": turn.content,
        "tool_calls": calls,
        "rejected": "some" if rejected and case["expect"]["rejected"] == "some" else rejected,
        "complete": turn.complete,
    }
    wanted = {key: value for key, value in case["expect"].items() if value is not None}
    # As JSON text, so that 1, 1.0 and true differ and the order of arguments counts.
    assert json.dumps({key: found[key] for key in wanted}) == json.dumps(wanted)


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
    options = {"tools": case["tools"], "reason": REASONS[case["stop"]]}
    turn = atem.parse(case["input"], **options)
    assert turn == atem.collect(atem.parse_stream(case["input"], **options))
    whole = turn.finish_reason == ("tool_calls" if turn.calls else "stop")
    assert whole is turn.complete
