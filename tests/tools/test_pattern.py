"""Patterns of strangers: what they come to is known before they are compiled."""

from __future__ import annotations

import tracemalloc
from time import monotonic

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from atem.parser.values import ParameterTypes
from atem.tools import Tool
from atem.tools.check import faults
from atem.tools.pattern import MAX_SIZE, UNREADABLE, compiled, occurs, written_out
from atem.tools.validation import validate

HUGE = [
    "a{1000000000}",
    "a{" + "9" * 5000 + "}",
    "((a{1000}){1000}){1000}",
    "(?:[ab]c){30000000,}",
    "((((a{30}){30}){30}){30}){30}",
    "([)]a{1000}){1000}",
    "[]a{100000}",
    "[[]a{100000}",
    "(?V1)[]a{1000000000}[]]",
    "(?#()a{1000000}",
    "(?x)a{ 1000000 }",
    "(?x)( # ) \n a{1000} ){1000}",
]
USUAL = [
    (r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "0" * 8 + "-0000" * 3 + "-" + "0" * 12),
    (r"^[A-Za-z0-9+/]{4096}$", "A" * 4096),
    (r"^.{1,65536}$", "x"),
    (r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$", "2026-01-02T03:04:05Z"),
    (r"\{1000000}", "{1000000}"),
    (r"^[(]a{2}[)]{3}$", "(aa)))"),
    (r"(?x)^ a{3} $", "aaa"),
    (r"^[(?0-9)+ -]+$", "(0)12-3"),
    (r"^(?i:A)(?P<n>b)(?P=n)\(\?1$", "abb(?1"),
]  # fmt: skip
TOKENS = [
    "a", "[ab]", "[^)]", "[(]", "[]]", "[[]", "(", ")", "(?:", "(?=", "(?x)", "#", " ", "\\(",
    "\\]", "{3}", "{20,40}", "{ 9 }", "{5,}", "{0,9}", "|", "*", "(?V1)", "[[a]b]", "\\p{L}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HUGE)
def test_a_pattern_that_would_take_all_memory_is_not_compiled(pattern):
    assert written_out(pattern) > MAX_SIZE
    with pytest.raises(UNREADABLE):
        occurs(pattern, "a")


@pytest.mark.parametrize(
    "pattern", ["(?R)*", "(a(?1)?)*", "(?P<n>(?&n)|a)", "(?P<n>(?P>n)|a)", "[]a](?R)", "(a)(?-1)"]
)
def test_a_pattern_that_calls_itself_is_not_compiled(pattern):
    with pytest.raises(UNREADABLE):
        occurs(pattern, "a")


@pytest.mark.parametrize(("pattern", "text"), USUAL)
def test_the_repeats_of_usual_patterns_are_no_matter(pattern, text):
    assert occurs(pattern, text)


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_what_a_pattern_takes_is_never_reckoned_too_low(pattern):
    size = written_out(pattern)
    if size > MAX_SIZE:
        return
    tracemalloc.start()
    try:
        regex.compile(pattern, cache_pattern=False)
    except UNREADABLE:
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2**20 + 512 * size


def test_a_compiled_pattern_is_kept_and_only_some_are():
    assert compiled("kept") is compiled("kept")
    for number in range(200):
        compiled(f"other{number}")
    assert compiled.cache_info().currsize <= 64


def test_the_patterns_of_one_schema_are_bounded_together():
    properties = {f"p{n}": {"type": "string", "pattern": f"^a{{900}}{n}$"} for n in range(30)}
    (fault,) = faults(Tool("t", parameters={"type": "object", "properties": properties}))
    assert "patterns" in fault


SLOW = "^(a|aa)+$"
STUCK = "a" * 60 + "!"
SLOW_SCHEMAS = {
    "branches": {"anyOf": [{"pattern": SLOW + "b" * n} for n in range(60)]},
    "names": {
        "patternProperties": {SLOW + "b" * n: {} for n in range(60)},
        "additionalProperties": False,
    },
    "unevaluated names": {
        "patternProperties": {SLOW: {}},
        "unevaluatedProperties": False,
    },
}


@pytest.mark.parametrize("schema", SLOW_SCHEMAS.values(), ids=SLOW_SCHEMAS)
def test_all_searches_of_one_validation_share_their_time(schema):
    tool = Tool("t", parameters={"type": "object", "properties": {"x": schema}})
    began = monotonic()
    assert validate(tool, {"x": STUCK if "anyOf" in schema else {STUCK: 1}})
    assert monotonic() - began < 4


def test_names_that_cannot_be_checked_in_time_are_refused_with_the_tool():
    parameters = {"type": "object", **SLOW_SCHEMAS["unevaluated names"]}
    (fault,) = faults(Tool("t", parameters=parameters))
    assert "unevaluatedProperties" in fault


def test_the_type_of_a_name_is_found_in_a_bounded_time():
    types = ParameterTypes({"patternProperties": {SLOW + "b" * n: {} for n in range(60)}})
    began = monotonic()
    assert types[STUCK].admitted is None
    assert monotonic() - began < 4
