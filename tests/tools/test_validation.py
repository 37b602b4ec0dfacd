"""Arguments against schemas: jsonschema's own verdict is the oracle, short answers are the law."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from atem.messages import Violation
from atem.tools import Tool, validate


def violations(schema, arguments):
    return validate(Tool("t", parameters=schema), arguments)


def under(schema, value):
    """The violations of ``value`` as the argument ``a``, without the path to it."""
    return violations({"properties": {"a": schema}}, {"a": value})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 0.5])
    | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
leaf_schemas = st.one_of(
    st.just({}),
    kinds.map(lambda kind: {"type": kind}),
    st.lists(kinds, min_size=1, max_size=2, unique=True).map(lambda several: {"type": several}),
    st.lists(json_values, min_size=1, max_size=2).map(lambda members: {"enum": members}),
    st.sampled_from(["^a", "b$", "(ab)+", "a|b"]).map(lambda pattern: {"pattern": pattern}),
    st.integers(0, 2).map(lambda least: {"minLength": least, "minItems": least, "minimum": least}),
    st.just({"uniqueItems": True}),
)


def compose(inner):
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    patterns = st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2)
    return st.one_of(
        st.builds(lambda items: {"items": items}, inner),
        st.builds(lambda many: {"anyOf": many}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda many: {"oneOf": many}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda one: {"not": one}, inner),
        st.builds(
            lambda properties, patterned, extra: {
                "properties": properties,
                "patternProperties": patterned,
                "additionalProperties": extra,
                "required": sorted(properties)[:1],
            },
            named,
            patterns,
            st.booleans() | inner,
        ),
    )


schemas = st.recursive(leaf_schemas, compose, max_leaves=5)


@given(schemas, st.dictionaries(st.sampled_from("abc"), json_values, max_size=3))
def test_the_verdict_and_the_paths_are_those_of_jsonschema(schema, arguments):
    theirs = {
        "".join(f"/{part}" for part in error.absolute_path)
        for error in Draft202012Validator(schema).iter_errors(arguments)
    }
    assert {violation.path for violation in violations(schema, arguments)} == theirs


@given(schemas, st.dictionaries(st.sampled_from("abc"), json_values, max_size=3))
def test_violations_are_sorted_different_and_the_same_for_any_order_of_arguments(schema, arguments):
    found = violations(schema, arguments)
    assert all((a.path, a.message) < (b.path, b.message) for a, b in pairwise(found))
    backwards = dict(reversed(arguments.items()))
    assert {v.path for v in violations(schema, backwards)} == {v.path for v in found}


def test_no_schema_and_an_empty_one_accept_anything():
    assert violations(None, {"a": object()}) == violations({}, {"a": 1}) == ()


def test_the_schema_is_compiled_once_for_a_tool():
    tool = Tool("t", parameters={"type": "object"})
    assert tool.checker is tool.checker


def test_paths_are_json_pointers():
    schema = {"additionalProperties": {"items": {"type": "string"}}}
    (found,) = violations(schema, {"a/b~c": ["x", 1]})
    assert found == Violation("/a~1b~0c/1", "1 is not of type 'string'")


def test_the_draft_is_the_one_that_the_schema_names():
    tuple_of_old = {"items": [{"type": "string"}]}
    draft7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": tuple_of_old},
    }
    assert [violation.path for violation in violations(draft7, {"a": [1]})] == ["/a/0"]
    beside_reference = {"properties": {"a": {"$ref": "#/d/x", "type": "integer"}}, "d": {"x": {}}}
    old = {**beside_reference, "$schema": "http://json-schema.org/draft-07/schema#"}
    assert violations(beside_reference, {"a": "s"})
    assert not violations(old, {"a": "s"})  # draft 7 ignores what stands beside $ref


def test_chained_references_and_unions_are_followed():
    schema = {
        "properties": {"a": {"$ref": "#/$defs/one"}},
        "$defs": {
            "one": {"$ref": "#/$defs/two"},
            "two": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
    }
    assert not violations(schema, {"a": None})
    (found,) = violations(schema, {"a": "x"})
    assert found == Violation("/a", "'x' is not of type 'integer'; or 'x' is not of type 'null'")


def test_each_alternative_is_quoted_with_its_first_complaint():
    (found,) = under({"oneOf": [{"type": "integer", "enum": [7]}, {"maxLength": 0}]}, "x")
    assert found.message == "'x' is not of type 'integer'; or 'x' is expected to be empty"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"anyOf": [{"type": "string"}]},
        {"enum": ["x"]},
        {"const": "x"},
        {"$ref": "#/$defs/S"},
        {"type": ["string"], "pattern": "^x"},
    ],
)
def test_nullable_lets_null_through_and_nothing_else(schema):
    root = {"properties": {"a": {**schema, "nullable": True}}, "$defs": {"S": {"type": "string"}}}
    assert not violations(root, {"a": None})
    assert violations(root, {"a": 5})
    assert violations({**root, "properties": {"a": schema}}, {"a": None})


class Served(BaseHTTPRequestHandler):
    """A schema for whoever asks; ``asked`` counts them."""

    asked = 0

    def do_GET(self):
        type(self).asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"type": "integer"}')

    def log_message(self, *_):
        """Nothing on the test's screen."""


@pytest.fixture
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/schema.json"
        server.shutdown()


def test_nothing_is_ever_fetched(address):
    schema = {"properties": {"a": {"$ref": address}}}
    (found,) = violations(schema, {"a": 1})
    assert "can't be applied" in found.message
    assert address in found.message
    assert Served.asked == 0
    with urlopen(address) as answer:  # the schema was there for the taking
        assert json.load(answer) == {"type": "integer"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": 5},
        {"properties": 5},
        {"properties": {"a": 5}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"minLength": "x"}}},
        {"properties": {"a": {"$ref": "#/$defs/Gone"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"multipleOf": 0}}, "required": 3},
        {"$schema": ["x"], "type": "string"},
        {"$id": 7, "properties": {"a": {"$ref": "#"}}},
        {"required": 5},
    ],
)
def test_a_schema_that_breaks_is_a_violation_not_an_exception(schema):
    assert violations(schema, {"a": "text"})


def test_what_was_found_before_a_schema_broke_is_kept():
    schema = {"required": ["b"], "properties": {"a": {"type": "nonsense"}}}
    assert [violation.path for violation in violations(schema, {"a": 1})] == ["", ""]


def nest(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize(
    "inner", [{"type": "string"}, {"$ref": "#/$defs/T"}, {"uniqueItems": True}, {"enum": [1]}]
)
def test_deep_arguments_never_raise(depth, inner):
    tree = {"items": {"$ref": "#/$defs/T"}, "maxItems": 0}
    found = violations({"properties": {"a": inner}, "$defs": {"T": tree}}, {"a": nest(depth)})
    assert all(len(violation.message) <= 200 for violation in found)
    assert found or inner == {"uniqueItems": True}


def test_arguments_too_deep_to_check_are_called_that():
    tree = {"type": "array", "items": {"$ref": "#/$defs/T"}}
    found = violations(
        {"properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": tree}}, {"a": nest(5000)}
    )
    assert found == (Violation("", "the arguments are nested too deeply to be checked"),)


HUGE = {
    "text of 16 MiB": "x" * (16 << 20),
    "digits": 10**4299,
    "too many digits to print": 10**5000,
    "an array": [0] * 200_000,
    "lone surrogate": "\ud800" * 300,
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "boolean"},
        {"enum": [1, 2]},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"maxLength": 3, "maxItems": 3, "maximum": 3},
        {"multipleOf": 0.7, "pattern": "^y", "items": {"type": "null"}},
    ],
)
def test_messages_are_short_whatever_the_value(name, schema):
    found = under(schema, HUGE[name])
    assert found
    assert all(len(violation.message) <= 200 for violation in found)


def test_a_long_message_keeps_its_end_where_it_says_what_was_expected():
    (found,) = under({"type": "integer"}, "x" * 10_000)
    assert found.message.startswith("'xxx")
    assert found.message.endswith("is not of type 'integer'")


def test_names_inside_a_value_make_no_long_path():
    (found,) = under({"additionalProperties": {"type": "string"}}, {"k" * 1_000_000: 1})
    assert len(found.path) <= 1000


def test_many_violations_are_cut_and_said_to_be():
    found = under({"items": {"type": "string"}}, list(range(100_000)))
    assert len(found) == 33
    assert found[-1] == Violation("", "and more: only the first 32 are listed")
    assert len(under({"items": {"type": "string"}}, list(range(32)))) == 32


SLOW = "a" * 60 + "b"


def test_a_pattern_that_backtracks_is_given_up():
    start = time.perf_counter()
    for schema in (
        {"properties": {"a": {"pattern": "^(a|aa)+$"}}},
        {"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
    ):
        assert violations(schema, {"a": SLOW, SLOW: 1})
    assert time.perf_counter() - start < 5


def test_a_long_text_is_given_the_time_that_its_length_needs():
    assert not under({"pattern": r"(\w+ )+end$"}, "word " * 1_000_000 + "end")


def test_a_pattern_may_use_json_schemas_own_syntax():
    assert not under({"pattern": r"^\p{Lu}+$"}, "ÅB")
    assert under({"pattern": r"^\p{Lu}+$"}, "åb")


def test_unique_items_tell_true_from_one_and_take_linear_time():
    assert not under(
        {"uniqueItems": True}, [1, True, 0, False, "1", [1], [True], {"a": 1}, {"a": True}]
    )
    assert under({"uniqueItems": True}, [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}])
    start = time.perf_counter()
    assert not under({"uniqueItems": True}, [{"a": index} for index in range(30_000)])
    assert time.perf_counter() - start < 3


def test_a_round_trip_through_json_changes_no_verdict():
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"]}
    for arguments in ({"n": 1, "s": "é"}, {"n": 1.0}, {"n": 1.5}, {"s": None}):
        assert violations(schema, json.loads(json.dumps(arguments))) == violations(
            schema, arguments
        )
