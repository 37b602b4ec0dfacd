"""Each text format: what is refused when it is asked for, and what when it is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field

from atem.responses.faults import ApiError
from atem.responses.text_format import TextFormat
from tests.responses.request.asking import ask, refused, system


class Step(BaseModel):
    text: str
    weight: float | None = None


class Plan(BaseModel):
    title: str = Field(max_length=10)
    steps: list[Step]
    parent: Plan | None = None


def schema(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
        **fields,
    }


def wanted(given_: Any, *, strict: Any = True, **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "name": "out", "schema": given_, "strict": strict, **fields}


@pytest.mark.parametrize("value", [None, {"type": "text"}, {}])
def test_plain_text_asks_nothing(value: Any) -> None:
    found = TextFormat.of(value)
    assert (found.kind, found.enforced, found.instruction(), found.faults("anything")) == (
        "text",
        False,
        "",
        [],
    )


@pytest.mark.parametrize(("answer", "fits"), [('{"a": 1}', True), (" {}\n", True), ("[]", False), ("{", False), ("", False), ('{"a": NaN}', False), ("[" * 10**5, False)])  # fmt: skip
def test_a_json_object_is_one(answer: str, fits: bool) -> None:
    assert (TextFormat.of({"type": "json_object"}).faults(answer) == []) is fits


@pytest.mark.parametrize(("answer", "fits"), [('{"a": 1}', True), ('{"a": "1"}', False), ("{}", False), ('{"a": 1, "b": 2}', False), ("[1]", False), ('"a"', False)])  # fmt: skip
def test_a_strict_answer_matches_its_schema(answer: str, fits: bool) -> None:
    assert (TextFormat.of(wanted(schema())).faults(answer) == []) is fits


@pytest.mark.parametrize("strict", [False, None])
def test_a_format_that_is_not_strict_guides_and_enforces_nothing(strict: Any) -> None:
    found = TextFormat.of(wanted({"type": "array"}, strict=strict))
    assert not found.enforced
    assert found.faults("no JSON") == []
    assert '{"type": "array"}' in found.instruction()


def test_a_checked_format_takes_any_schema_and_holds_the_answer_to_it() -> None:
    optional = {"type": "object", "properties": {"a": {"type": "integer"}}, "oneOf": [{}]}
    given_ = wanted(optional, strict=None, checked=True)
    assert refused(text={"format": wanted(optional)}).code == "invalid_json_schema"
    made = ask(text={"format": given_})
    assert made.must == {"format"}
    assert made.echo["text"]["format"] == {**given_, "description": None, "strict": False}
    assert made.format.faults("{}") == []
    assert made.format.faults('{"a": "1"}')
    assert refused(text={"format": wanted(schema(), checked=1)}).param == "text.format.checked"


def test_what_a_turn_must_be_is_told_by_the_format() -> None:
    assert ask(text={"format": wanted(schema())}).must == {"format"}
    assert ask(text={"format": wanted(schema(), strict=False)}).must == frozenset()


def test_the_model_is_told_the_schema_its_name_and_its_description() -> None:
    told = system(
        ask(text={"format": wanted(schema(), description="A number.")}, instructions="Be brief.")
    )
    assert json.dumps(schema()) in told
    assert "'out'" in told
    assert "A number." in told
    assert told.index("Be brief.") < told.index("'out'")


def test_the_echo_has_every_key() -> None:
    assert ask(text={"format": wanted(schema())}).echo["text"]["format"] == {
        "type": "json_schema", "name": "out", "description": None, "schema": schema(), "strict": True,
    }  # fmt: skip
    assert ask(text={"format": {"type": "json_object"}}).echo["text"]["format"] == {
        "type": "json_object"
    }


def test_what_the_sdk_makes_of_a_model_is_accepted() -> None:
    found = TextFormat.of(wanted(to_strict_json_schema(Plan)))
    answer = {"title": "x", "steps": [{"text": "y", "weight": None}], "parent": None}
    assert found.faults(json.dumps(answer)) == []
    assert found.faults(json.dumps({**answer, "title": "x" * 11}))


UNSUPPORTED = ["allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames", "minProperties", "unevaluatedProperties", "contains", "prefixItems"]  # fmt: skip


@pytest.mark.parametrize("keyword", UNSUPPORTED)
def test_a_keyword_that_strict_mode_lacks_is_refused_with_its_pointer(keyword: str) -> None:
    inner = schema(properties={"a/b": {"type": "integer", keyword: {}}}, required=["a/b"])
    error = refused(text={"format": wanted(inner)})
    assert (error.status, error.code, error.param) == (
        400,
        "invalid_json_schema",
        "text.format.schema",
    )
    assert keyword in error.message
    assert "/properties/a~1b" in error.message


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "array", "items": {"type": "string"}}, {"anyOf": [schema()]}, schema(anyOf=[schema()]),
        schema(additionalProperties=True), {key: value for key, value in schema().items() if key != "additionalProperties"},
        schema(required=[]), {key: value for key, value in schema().items() if key != "required"}, schema(properties={"a": True}),
        schema(properties={"a": {"type": "array"}}), schema(properties={"a": {"type": "nonsense"}}), schema(properties=5), schema(required="a"),
        schema(properties={"a": {"$ref": "#/$defs/gone"}}), schema(properties={"a": {"$ref": "https://host/x"}}),
        schema(properties={"a": {"type": "string", "pattern": "("}}), schema(properties={"a": {"type": "object"}}),
        schema(properties={"a": {"anyOf": [{"type": "object", "properties": {"x": {"type": "string"}}}]}}), schema(description="x" * (1 << 17)),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_strict_is_refused(bad: Any) -> None:
    assert refused(text={"format": wanted(bad)}).code == "invalid_json_schema"


def test_a_broken_schema_is_refused_even_as_a_guide() -> None:
    assert (
        refused(text={"format": wanted({"type": "nonsense"}, strict=False)}).code
        == "invalid_json_schema"
    )


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (5, "text.format"), ("json_object", "text.format"), ({"type": "xml"}, "text.format.type"), ({"type": 5}, "text.format.type"),
        ({"type": "json_schema", "schema": {}}, "text.format.name"), (wanted({}, name=""), "text.format.name"), (wanted({}, name="x" * 65), "text.format.name"),
        (wanted(None), "text.format.schema"), (wanted([]), "text.format.schema"), (wanted(schema(), strict="yes"), "text.format.strict"),
        (wanted(schema(), description=5), "text.format.description"),
    ],
)  # fmt: skip
def test_what_is_no_format_is_refused_with_its_place(value: Any, param: str) -> None:
    assert refused(text={"format": value}).param == param


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "properties", "required", "anyOf", "items", "$ref", "enum", "$schema", "additionalProperties", "a"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON, st.sampled_from([True, False]), st.text(max_size=20))
def test_any_schema_is_taken_or_refused_and_any_answer_is_judged(
    given_: Any, strict: bool, answer: str
) -> None:
    try:
        found = TextFormat.of(wanted(given_, strict=strict))
    except ApiError as error:
        status = error.status
    else:
        status = 400 if isinstance(found.faults(answer), list) else 0
    assert status == 400
