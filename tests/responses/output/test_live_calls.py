"""Calls that are shown while they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.responses.output.unescape import Unescaper
from tests.responses.output.contract import check
from tests.responses.output.writing import TOOLS, builder, called, invoke, streamed


def test_arguments_come_before_the_call_is_decided() -> None:
    text = called(invoke("read", path="a long name"))
    made = builder(arguments="stream")
    events = streamed(made, list(text))
    check(events)
    deltas = [e for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert len(deltas) > 5


def test_an_open_call_holds_back_the_end_of_its_json() -> None:
    text = called(invoke("read", path="a"), end="").removesuffix("</atem:function_calls>")[:-2]
    response = check(streamed(builder(arguments="stream"), list(text), reason="length"))
    shown, said = response["output"]
    assert (shown["type"], shown["status"]) == ("function_call", "incomplete")
    with pytest.raises(json.JSONDecodeError):
        json.loads(shown["arguments"])
    assert "was not passed on" in said["content"][0]["text"]


def test_only_one_call_is_open_at_a_time() -> None:
    text = called(invoke("read", path="a"), invoke("patch", input="b"), invoke("read", path="c"))
    response = check(streamed(builder(arguments="stream"), list(text)))
    assert [item["type"] for item in response["output"]] == [
        "function_call", "custom_tool_call", "function_call",
    ]  # fmt: skip


def test_a_custom_input_is_unescaped_as_it_comes() -> None:
    text = called(invoke("patch", input='*** "a"\n\\b\tç'), to="patch")
    events = streamed(builder(arguments="stream"), list(text))
    (item,) = check(events)["output"]
    assert item["input"] == '*** "a"\n\\b\tç'
    deltas = [e for e in events if e["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) > 5


def test_a_call_that_may_not_be_made_is_never_opened() -> None:
    from atem.responses.choice import Choice

    made = builder(TOOLS, arguments="stream", choice=Choice("none"))
    response = check(streamed(made, list(called(invoke("read", path="a")))))
    assert [item["type"] for item in response["output"]] == ["message"]


@given(st.text(), st.integers(1, 9), st.booleans())
def test_no_cut_of_the_json_changes_the_text(text: str, width: int, escaped: bool) -> None:
    whole = json.dumps({"input": text}, ensure_ascii=escaped)
    reader = Unescaper()
    pieces = [reader.feed(whole[at : at + width]) for at in range(0, len(whole), width)]
    assert "".join(pieces) == text


def test_other_arguments_give_nothing() -> None:
    reader = Unescaper()
    assert reader.feed('{"other": "text"}') == ""
