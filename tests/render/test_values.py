"""Argument values on the wire, and the names that can't stand there."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import RenderError
from atem.messages import Message
from atem.render import render
from atem.render.values import encode_value, header_name, parameter_name, tag_name
from tests.render import strategies as some
from tests.render.calls import call


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (0, "0"),
        (-3, "-3"),
        (10**25, "10000000000000000000000000"),
        (1.5, "1.5"),
        (1e30, "1e+30"),
        (0.1 + 0.2, "0.30000000000000004"),
        (Decimal("1.10"), "1.10"),
        ("", ""),
        ("  keep\r\n\tit ", "  keep\r\n\tit "),
        ("null", "null"),
        ('"x" & <y>', '"x" & <y>'),
        ([], "[]"),
        ({}, "{}"),
        ([1, "é", None, True], '[1, "é", null, true]'),
        ((1, 2), "[1, 2]"),
        ({"b": {"a": "🙂"}}, '{"b": {"a": "🙂"}}'),
    ],
)
def test_a_value_is_written_as_the_format_says(value: object, written: str) -> None:
    assert encode_value(value, "x") == written


@given(value=st.lists(some.values) | st.dictionaries(st.text(), some.values))
def test_a_container_is_json_with_everything_kept(value: Any) -> None:
    assert json.loads(encode_value(value, "x")) == value


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        [-math.inf],
        {"a": {"b": math.nan}},
        {1, 2},
        [object()],
        b"bytes",
        10**5000,
        [10**5000],
    ],
    ids=lambda value: str(type(value)),
)
def test_what_json_can_t_express_is_refused_by_name(value: object) -> None:
    message = Message("assistant", calls=(call("read", {"depth": value}),))
    with pytest.raises(RenderError, match="argument 'depth' of the call to 'read'"):
        render([message])


def test_a_nesting_too_deep_to_write_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RenderError, match="can't be written as JSON"):
        encode_value(deep, "x")


@pytest.mark.parametrize("name", ["read", "mail.send", "größe", "a-b_c:d/e", "don't", "a\u00a0b"])
def test_a_name_without_spaces_and_tag_characters_is_written(name: str) -> None:
    assert header_name(name, "x") == name
    assert tag_name(name, "x") == name


@pytest.mark.parametrize("name", ["", "a b", "a\n", "a<b", "<|eot|>"])
def test_a_name_that_breaks_a_header_is_refused(name: str) -> None:
    with pytest.raises(RenderError):
        header_name(name, "the tool")


@pytest.mark.parametrize("name", ["", "a<b", "a>b", 'a"b', "<|eot|>"])
def test_a_name_that_breaks_a_tag_is_refused(name: str) -> None:
    with pytest.raises(RenderError):
        tag_name(name, "the tool")


@pytest.mark.parametrize("name", ["a b", "a\n", "a<b", "a>b", 'a"b'])
def test_a_result_s_name_stands_in_a_header_and_in_a_tag(name: str) -> None:
    with pytest.raises(RenderError, match="a tool result"):
        render([Message("tool", "out", name=name)])


def test_the_model_s_own_recipients_and_names_are_written_back() -> None:
    thought = Message("assistant", "x", recipient='a">b')
    assert ' to=a">b<|message|>x' in render([thought]).text()
    made = Message("assistant", recipient="read", calls=(call("read", {}, raw_name="x y.read"),))
    assert '<atem:invoke name="x y.read">' in render([made]).text()


def test_an_argument_name_may_have_spaces() -> None:
    assert parameter_name("with space", "x") == "with space"


@pytest.mark.parametrize("key", ["", "a<b", "a>b", 'a"b', 1, None])
def test_an_argument_name_that_breaks_its_tag_is_refused(key: object) -> None:
    with pytest.raises(RenderError, match="argument name"):
        parameter_name(key, "the call")
