"""Every turn under examples/turns comes out as the .json beside it says, however it is cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.golden.expectation import ROOT, check, without_last_newline

FOLDER = ROOT / "examples" / "turns"
TOOLS = {
    tool["function"]["name"]: tool
    for tool in json.loads((FOLDER / "tools.json").read_text("utf-8"))
}
TURNS = sorted(path.stem for path in FOLDER.glob("*.atem"))


def read(name):
    """The text of a turn, what is said about it, and the tools it may use."""
    text = (FOLDER / f"{name}.atem").read_bytes().decode()
    about = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return without_last_newline(text), about, [TOOLS[tool] for tool in about["tools"]]


def test_each_turn_has_an_expectation_and_a_reason():
    assert [path.stem for path in sorted(FOLDER.glob("[0-9]*.json"))] == TURNS
    assert all(read(name)[1]["why"].endswith(".") for name in TURNS)
    assert len(TURNS) >= 12


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_parsed_whole_is_as_written(name):
    text, about, tools = read(name)
    check(atem.parse(text, tools=tools, reason=about["reason"]), about["expect"])


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_parsed_one_byte_at_a_time_is_as_written(name):
    text, about, tools = read(name)
    octets = [bytes([octet]) for octet in text.encode()]
    check(atem.parse(octets, tools=tools, reason=about["reason"]), about["expect"])


@given(name=st.sampled_from(TURNS), cuts=st.sets(st.integers(0, 2000), max_size=12))
def test_a_turn_cut_anywhere_is_as_written(name, cuts):
    text, about, tools = read(name)
    edges = [0, *sorted(cuts), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    check(atem.parse(parts, tools=tools, reason=about["reason"]), about["expect"])


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_that_is_stopped_early_never_calls_what_the_whole_turn_does_not(name):
    text, about, tools = read(name)
    whole = [(call["name"], call["arguments"]) for call in about["expect"]["calls"]]
    for end in range(len(text)):
        calls = atem.parse(text[:end], tools=tools, reason="length").calls
        assert [(call.name, call.arguments) for call in calls] == whole[: len(calls)]
