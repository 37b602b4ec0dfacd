"""What can't be called is named before a model tries; what is merely odd is not."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, RootModel

from atem.errors import InvalidTool
from atem.tools import Tool, ToolSet


def schema(**properties):
    return {"type": "object", "properties": properties}


SOUND = {
    "no schema": None,
    "empty schema": {},
    "no type": {"properties": {"a": {}}},
    "object among types": {"type": ["object", "null"]},
    "local reference": {**schema(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}},
    "anchor": {**schema(a={"$ref": "#here"}), "$defs": {"A": {"$anchor": "here"}}},
    "recursive": schema(a={"$ref": "#"}),
    "older draft": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **schema(a={"$ref": "#/definitions/A"}),
        "definitions": {"A": {}},
    },
    "unknown draft": {"$schema": "urn:example:none", **schema(a={"type": "string"})},
    "odd parameter name": schema(**{"a b'&;\n": {}}),
    "data that looks like a reference": schema(
        a={"default": {"$ref": "http://example.invalid"}, "enum": [{"$ref": "x"}]}
    ),
    "a parameter called $ref": schema(**{"$ref": {"type": "string"}}),
    "a pattern of JSON Schema's syntax": schema(a={"pattern": r"^\p{L}+$"}),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_schema_passes(name):
    ToolSet([Tool("t", parameters=SOUND[name])]).check()


BROKEN = [
    ({"type": "string"}, "of type 'string', but arguments are always an object"),
    ({"type": ["array", "null"]}, "arguments are always an object"),
    ({"type": "strin"}, "not a valid JSON Schema"),
    ({"properties": 5}, "not a valid JSON Schema"),
    ({"$schema": ["x"]}, "not a valid JSON Schema"),
    (
        schema(a={"$ref": "http://example.invalid/x"}),
        "'http://example.invalid/x' is outside the schema",
    ),
    (schema(a={"items": {"$ref": "other.json"}}), "'other.json' is outside the schema"),
    (schema(default={"$ref": "other.json"}), "'other.json' is outside the schema"),
    (schema(a={"$dynamicRef": "other.json"}), "'other.json' is outside the schema"),
    (schema(a={"$ref": "#/$defs/Gone"}), "'#/\\$defs/Gone' leads nowhere"),
    (schema(a={"pattern": "("}), r"the pattern '\(' is broken"),
    ({"patternProperties": {"[": {}}}, r"the pattern '\[' is broken"),
    (schema(**{"": {}}), "parameter '' can't be written: it is empty"),
    (schema(**{'a"b': {}}), "can't be written: it contains '\"'"),
    (schema(**{"a<b": {}}), "can't be written"),
    (schema(**{"a>b": {}}), "can't be written"),
    (schema(**{"k" * 1100: {}}), "it has 1100 characters"),
]


@pytest.mark.parametrize(("parameters", "message"), BROKEN)
def test_a_schema_that_cannot_be_used_is_refused(parameters, message):
    with pytest.raises(InvalidTool, match=message):
        ToolSet([Tool("t", parameters=parameters)]).check()


class Node(BaseModel):
    children: list["Node"] = []
    label: str = Field("", alias="the<label>")


def test_a_schema_behind_a_reference_is_judged_where_it_leads():
    assert "$ref" in Node.model_json_schema()
    with pytest.raises(InvalidTool, match="tool 'Node', parameters: the parameter 'the<label>'"):
        ToolSet([Node]).check()
    looped = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    ToolSet([Tool("t", parameters=looped)]).check()


def test_a_model_that_is_not_an_object_is_refused():
    with pytest.raises(InvalidTool, match="of type 'array'"):
        ToolSet([RootModel[list[int]]]).check()


def test_every_fault_of_every_tool_is_listed_at_once():
    tools = ToolSet(
        [Tool("self"), Tool("fine"), Tool("a b"), Tool("t", parameters={"type": "string"})]
    )
    with pytest.raises(InvalidTool) as caught:
        tools.check()
    text = str(caught.value)
    assert all(part in text for part in ("'self'", "'a b'", "tool 't'"))
    assert "fine" not in text


def test_a_namespaced_tool_is_judged_by_its_wire_name():
    ToolSet([Tool("self", namespace="mail"), Tool("commentary")]).check()
    with pytest.raises(InvalidTool, match=r"'my mail\.send'"):
        ToolSet([Tool("send", namespace="my mail")]).check()


def test_two_names_that_only_resolution_relates_are_both_callable():
    ToolSet([Tool("x"), Tool("x.x"), Tool("functions.x")]).check()


def test_a_schema_that_holds_itself_is_judged_in_finite_time():
    loop = schema(a={"type": "string"})
    loop["properties"]["b"] = {"anyOf": [loop["properties"]["a"], loop["properties"]["a"]]}
    loop["x-self"] = loop
    ToolSet([Tool("t", parameters=loop)]).check()


def test_the_message_stays_short_whatever_the_schema_holds():
    with pytest.raises(InvalidTool) as caught:
        ToolSet([Tool("t" * 100_000, parameters={"type": "x" * 100_000})]).check()
    assert len(str(caught.value)) < 2000


def test_a_schema_that_many_tools_have_is_refused_in_the_name_of_each():
    with pytest.raises(InvalidTool) as caught:
        ToolSet([Tool(name, parameters={"type": "array"}) for name in ("a", "b")]).check()
    assert "tool 'a', parameters" in str(caught.value)
    assert "tool 'b', parameters" in str(caught.value)


def test_a_schema_that_was_sound_and_then_changed_is_judged_anew():
    schema = {"type": "object"}
    ToolSet([Tool("a", parameters=schema)]).check()
    schema["type"] = "array"
    with pytest.raises(InvalidTool):
        ToolSet([Tool("a", parameters=schema)]).check()
