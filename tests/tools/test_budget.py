"""What multiplies is given up after a counted number of steps; what is only big is checked."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from atem.messages import Violation
from atem.tools import Tool, validate
from atem.tools.budget import BASE, PER_MEMBER, Budget, TooCostly
from atem.tools.schema import Checker

NODE = {"$ref": "#/$defs/node"}


def recursive(node):
    return {"properties": {"x": NODE}, "$defs": {"node": node}}


def child(**more):
    return {"type": "object", "properties": {"c": NODE}, **more}


def objects(depth):
    value = {}
    for _ in range(depth):
        value = {"c": value}
    return value


def arrays(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


BRANCHES = [child(required=["k"]), child(required=["m"]), {"type": "string"}]
LISTS = [{"items": NODE, "type": "array"}, {"items": NODE, "type": ["array", "null"]}]
NEVER = {"required": ["k"]}
EXPLOSIONS = {
    "anyOf": (recursive({"anyOf": BRANCHES}), objects(14)),
    "anyOf, far deeper": (recursive({"anyOf": BRANCHES}), objects(60)),
    "oneOf": (recursive({"oneOf": LISTS}), arrays(30)),
    "allOf": (recursive({"allOf": [child(), child()]}), objects(40)),
    "not": (recursive({"not": {"anyOf": [child(**NEVER), child(**NEVER)]}}), objects(40)),
    "contains": (recursive({"contains": {"oneOf": [NODE, NODE]}}), arrays(40)),
    "unevaluated": (
        recursive({"unevaluatedProperties": False, "anyOf": [child(), child()]}),
        objects(40),
    ),
    "a draft named inside": (
        recursive(
            {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [child(), child()]}
        ),
        objects(40),
    ),
}
"""Each of these is 2 ** depth steps or more for jsonschema: at depth 30 it would not return."""


@pytest.mark.parametrize("name", EXPLOSIONS)
def test_a_schema_that_multiplies_with_depth_is_one_violation_after_a_counted_end(name):
    schema, value = EXPLOSIONS[name]
    (found,) = validate(Tool("t", parameters=schema), {"x": value})
    assert found.path == ""
    assert found.message.startswith("the schema is too costly to check on these arguments")
    assert len(found.message) <= 200

    budget = Budget({"x": value})
    with pytest.raises(TooCostly):
        list(Checker(schema).errors({"x": value}, budget))
    assert budget.spent == budget.limit


def test_what_was_found_before_the_end_of_the_budget_is_kept():
    schema = {"required": ["y"], **recursive({"anyOf": BRANCHES})}
    first, second = validate(Tool("t", parameters=schema), {"x": objects(30)})
    assert "too costly" in first.message + second.message
    assert Violation("", "'y' is a required property") in (first, second)


def test_the_same_arguments_take_the_same_steps_again():
    checker = Checker(recursive({"anyOf": BRANCHES}))
    budgets = [Budget({"x": objects(8)}) for _ in range(2)]
    for budget in budgets:
        list(checker.errors({"x": objects(8)}, budget))
    assert 0 < budgets[0].spent == budgets[1].spent < budgets[0].limit


@pytest.mark.parametrize(
    ("value", "members"),
    [("x" * 99, 0), ([], 0), ([1, 2], 2), ({"a": [1, 2], "b": {"c": 1}}, 5), ((1, (2,)), 3)],
)
def test_the_budget_grows_with_the_values_inside_a_value(value, members):
    assert Budget(value).limit == BASE + PER_MEMBER * members


def test_a_value_that_holds_itself_has_an_end():
    value = []
    value.append(value)
    assert Budget(value).limit == BASE + PER_MEMBER


UNION = {"anyOf": [{"properties": {"kind": {"const": k}}, "required": ["kind"]} for k in range(40)]}
NAMES = [f"p{number}" for number in range(200)]
BIG = {
    "a string of 1 MiB": ({"type": "string", "maxLength": 9}, "x" * (1 << 20)),
    "an array of 10,000": (
        {"items": {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]}},
        list(range(10_000)),
    ),
    "an array of 500 from a union of 40": (
        {"items": UNION},
        [{"kind": number % 41} for number in range(500)],
    ),
    "an object of 200": (
        {
            "properties": {name: {"$ref": "#/$defs/text"} for name in NAMES},
            "required": [*NAMES, "one more"],
            "propertyNames": {"maxLength": 3},
            "$defs": {"text": {"type": "string", "maxLength": 5}},
        },
        {name: "x" * (number % 7) for number, name in enumerate(NAMES)},
    ),
}


@pytest.mark.parametrize("name", BIG)
def test_an_ordinary_big_value_gets_exactly_the_errors_of_jsonschema(name):
    schema, value = BIG[name]
    theirs = Draft202012Validator(schema).iter_errors(value)
    budget = Budget(value)
    ours = Checker(schema).errors(value, budget)
    described = [(list(error.absolute_path), error.message) for error in ours]
    assert described == [(list(error.absolute_path), error.message) for error in theirs]
    assert described
    assert budget.spent < budget.limit


def test_a_format_is_no_constraint():
    schema = {"properties": {"a": {"format": "ipv4"}}}
    assert validate(Tool("t", parameters=schema), {"a": "no address"}) == ()


def test_a_draft_that_is_named_inside_keeps_its_meaning_and_the_bounds():
    inside = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    schema = {"properties": {"a": inside, "b": {**inside, "items": {"pattern": "^(a|aa)+$"}}}}
    tool = Tool("t", parameters=schema)
    assert [found.path for found in validate(tool, {"a": [1, 2]})] == ["/a/0"]
    (slow,) = validate(tool, {"b": ["a" * 60 + "b"]})
    assert "takes too long" in slow.message
