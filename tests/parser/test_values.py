"""The typing of arguments: wire_format 7, row by row, and what bounds it. Laws: test_value_laws."""

import json
import sys
import time

import pytest

from atem.parser.values import (
    MAX_CACHED,
    UNTYPED,
    ParameterTypes,
    to_json,
)
from atem.tools import Tool, validate


def typed(schema, **root):
    return ParameterTypes({"type": "object", "properties": {"a": schema}, **root})["a"]


def assert_reads(value_type, text, expected):
    # repr tells True from 1, 3 from 3.0 and -0.0 from 0.0.
    assert repr(value_type.decode(text)) == repr(expected)


STR, INT, NUM = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOL, NULL, ARR, OBJ = {"type": "boolean"}, {"type": "null"}, {"type": "array"}, {"type": "object"}
ROWS = {
    "string only": [
        (
            STR,
            {},
            ["12345", '{"a": 1}', "null", '"x"', "true", "NaN", "", " \r\n x ", "\ud800", "a\x00b"],
        ),
        (STR, {}, ["&lt;b&gt;", "<![CDATA[x]]>", "x" * 10_000]),
    ],
    "integer": [
        (
            INT,
            {"42": 42, "0": 0, "-7": -7, " -7 ": -7, "\t\r\n5\n": 5},
            ["3.5", "007", "+5", ".5", "5."],
        ),
        (
            INT,
            {"3.0": 3, "-0.0": 0, "1e30": 10**30},
            ["1e999", "1e-400", "1e-99999999999999999999", "NaN"],
        ),
        (
            INT,
            {"1234567890123456789": 1234567890123456789},
            ["0x10", "1_000", "٣", "\u00a05", "5 5", ""],
        ),
        (INT, {"12345678901234567890.0": 12345678901234567890}, ["1.0000000000000000000000001"]),
        (INT, {"1" * 30: int("1" * 30)}, ["2026-12-06", '"5"', "true", "null", "[5]"]),
    ],
    "number": [
        (
            NUM,
            {"5": 5, "3.0": 3.0, "-0.0": -0.0, "1.5e3": 1500.0, " 5 ": 5},
            ["007", "+5", ".5", "1,5"],
        ),
        (
            NUM,
            {"1" * 30: int("1" * 30)},
            ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "", "true"],
        ),
    ],
    "boolean": [
        (
            BOOL,
            dict.fromkeys(["true", "True", "TRUE", "tRuE", " true\n"], True),
            ["maybe", "1", "yes"],
        ),
        (
            BOOL,
            dict.fromkeys(["false", "False", "FALSE"], False),
            ["0", "truex", '"true"', "null", ""],
        ),
    ],
    "null": [
        (NULL, {"null": None, " null ": None}, ["None", "NULL", "", "0"]),
        ({"type": ["number", "null"]}, {"null": None, "7": 7}, ["None", "x"]),
    ],
    "array and object": [
        (
            ARR,
            {'["a", 1, null]': ["a", 1, None], "[]": [], "[3.0, 1e2]": [3.0, 100.0]},
            ["[1", "[1] x"],
        ),
        (
            ARR,
            {" [1]\n": [1]},
            ["[01]", "[-Infinity]", '["\n"]', "a,b", "{}", "[1,]", "[1]\x00", "\ufeff[1]"],
        ),
        (
            OBJ,
            {'{"k": {"d": [1]}}': {"k": {"d": [1]}}, '\n{\n  "k": 1\n}\n': {"k": 1}},
            ["{'k': 1}", "[1]"],
        ),
        (
            OBJ,
            {r'{"t": "\ud800\u0000"}': {"t": "\ud800\x00"}},
            ['{"a": 1e999}', '{"a": NaN}', '{"a":1,}'],
        ),
        (OBJ, {'{"t": "</atem:parameter>"}': {"t": "</atem:parameter>"}}, ["null", '"{}"']),
    ],
    "union with string": [
        (
            {"type": ["string", "integer"]},
            {"42": 42, " 42 ": 42},
            ["forty", "4.5", '"42"', "[1]", "true"],
        ),
        ({"type": ["string", "null"]}, {"null": None}, ["17", '{"a": 1}', " x ", '"null"', ""]),
        ({"type": ["string", "boolean"]}, {"true": True, " false": False}, ["True", "FALSE", "1"]),
        ({"type": ["string", "array"]}, {"[1]": [1]}, ["[1", "{}", "1"]),
    ],
    "enum and const": [
        ({"enum": ["1", "2"]}, {}, ["1", "2", "3"]),
        ({"enum": [1, 2]}, {"2": 2, "2.0": 2, "3": 3}, ["x"]),
        ({"enum": [1.5, 2.5]}, {"2.5": 2.5}, ["x"]),
        ({"enum": [1.0, 2.5]}, {"1": 1, "1.0": 1.0}, []),
        ({"enum": ["fast", None]}, {"null": None}, ["fast", "slow"]),
        ({"enum": ["5", 6]}, {"6": 6, "7": 7}, ["5"]),
        ({"enum": ["1", True]}, {"true": True}, ["1", "True"]),
        ({"enum": [True]}, {"True": True}, ["1"]),
        ({"enum": [[1], "[2]", "[true]"]}, {"[1.0]": [1.0], "[3]": [3]}, ["[2]", "[true]"]),
        ({"enum": [{"a": 1}, '{"a": 2}']}, {'{"a": 1}': {"a": 1}}, ['{"a": 2}']),
        ({"allOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, {"5": 5}, ["a"]),
        ({"const": "5"}, {}, ["5"]),
        ({"const": 5}, {"5": 5}, ["five"]),
        ({"const": None}, {"null": None}, ["none"]),
        ({"type": "integer", "enum": ["1", 1]}, {"1": 1}, []),
        ({"type": "integer", "enum": [1.0, 2.0]}, {"1.0": 1, "2": 2}, []),
        ({"type": "string", "enum": ["1", 1]}, {}, ["1"]),
        ({"anyOf": [INT, {"const": 6}, STR]}, {"7": 7}, ["x"]),
        ({"anyOf": [{"enum": ["5", 4]}, {"enum": [6, "7"]}]}, {"4": 4, "6": 6}, ["5", "7"]),
        ({"allOf": [{"enum": [1, 2, "2"]}, {"enum": [1, "2"]}]}, {"1": 1}, ["2"]),
        ({"anyOf": [STR, {"const": False}]}, {"false": False}, ["true"]),
        ({"anyOf": [{"const": "auto"}, INT]}, {"5": 5}, ["auto"]),
    ],
    "combinations": [
        ({"anyOf": [INT, NULL]}, {"9": 9, "null": None}, ["x"]),
        ({"oneOf": [ARR, NULL]}, {"[1]": [1], "null": None}, ["{}"]),
        ({"anyOf": [STR, {}]}, {'"x"': "x", "5": 5}, ["x"]),
        ({"anyOf": [STR, {"title": "any"}]}, {"5": 5}, []),
        ({"anyOf": [STR, False]}, {}, ["5"]),
        ({"allOf": [{"type": ["string", "integer"]}, STR]}, {}, ["5"]),
        ({"allOf": [{"description": "d"}, INT]}, {"5.0": 5}, ['"x"']),
        ({"allOf": [NUM, INT]}, {"5.0": 5}, ["5.5"]),
        ({"allOf": [STR, INT]}, {"5": 5, '"x"': "x"}, ["x"]),
        ({"type": ["string", "integer"], "anyOf": [STR, NULL]}, {}, ["5", "null"]),
        ({"type": "string", "nullable": True}, {"null": None}, ["5"]),
        ({"type": "string", "nullable": False}, {}, ["null"]),
        ({"allOf": [INT], "nullable": True}, {"null": None, "5.0": 5}, ["x"]),
        ({"type": ["string", "no-such-type"]}, {}, ["5"]),
    ],
    "no constraint": [
        (schema, {"5": 5, "5.0": 5.0, " 5 ": 5, "[1,2]": [1, 2], '"x"': "x", "null": None}, words)
        for words in [["x", " x ", "", "True", "NaN", "1e999", "007", '{"a":', "7" * 4301]]
        for schema in ({}, True, False, {"description": "only words"}, {"nullable": True})
    ],
}


@pytest.mark.parametrize(
    ("schema", "decoded", "kept"), [case for cases in ROWS.values() for case in cases]
)
def test_each_row_of_the_rules(schema, decoded, kept):
    for text, expected in decoded.items():
        assert_reads(typed(schema), text, expected)
    for text in kept:
        assert_reads(typed(schema), text, text)


@pytest.mark.parametrize(
    ("schema", "streamed"),
    [
        (STR, True),
        ({"enum": ["a", "b"]}, True),
        ({"type": ["string"]}, True),
        ({"allOf": [STR, {"minLength": 1}]}, True),
        ({"enum": ["a", 1], "type": "string"}, True),
        ({"allOf": [{"enum": ["a", 1]}, {"enum": ["a", 2]}]}, True),
        ({"type": ["string", "null"]}, False),
        (INT, False),
        ({}, False),
        (False, False),
    ],
)
def test_only_a_type_of_strings_alone_may_be_streamed(schema, streamed):
    assert typed(schema).string_only is streamed


# --- References ---------------------------------------------------------------------------

DEFS = {
    "S": STR,
    "chain": {"$ref": "#/$defs/S"},
    "a/b~c d": STR,
    "~1": STR,
    "list": [INT, STR],
    "loop": {"$ref": "#/$defs/loop"},
    "ring": {"allOf": [{"$ref": "#/$defs/gnir"}]},
    "gnir": {"anyOf": [{"$ref": "#/$defs/ring"}]},
}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/S"},
        {"$ref": "#/$defs/chain"},
        {"$ref": "#/$defs/a~1b~0c%20d"},
        {"$ref": "#/$defs/~01"},
        {"$ref": "#/$defs/list/1"},
        {"$ref": "#/$defs/S", "description": "beside a sibling"},
        {"$ref": "#/$defs/S", "type": ["string", "integer"]},
        {"allOf": [{"$ref": "#/$defs/chain"}]},
    ],
)
def test_local_references_are_followed(schema):
    assert_reads(typed(schema, **{"$defs": DEFS}), "5", "5")


@pytest.mark.parametrize(
    "reference",
    [
        *("https://example.com/s.json", "other.json#/a", "#anchor", "", "#/", 5, None, ["#"]),
        *("#/$defs/none", "#/$defs/list/9", "#/$defs/list/-1", "#/$defs/list/S"),
        *("#/$defs/S/type/x", "#/$defs/loop", "#/$defs/ring"),
    ],
)
def test_a_reference_that_leads_nowhere_says_nothing(reference):
    assert typed({"$ref": reference}, **{"$defs": DEFS}) == UNTYPED
    assert_reads(typed({"$ref": reference, **STR}, **{"$defs": DEFS}), "5", "5")


def test_a_reference_to_the_root_is_the_root():
    assert_reads(typed({"$ref": "#"}), "5", "5")
    assert_reads(typed({"$ref": "#"}), "{}", {})


# --- Which schema a name has --------------------------------------------------------------


@pytest.mark.parametrize(
    "root",
    [
        {"$ref": "#/$defs/R", "$defs": {"R": {"properties": {"a": STR}}}},
        {"allOf": [{"properties": {"b": INT}}, {"properties": {"a": STR}}]},
        {"anyOf": [{"properties": {"b": INT}}, {"properties": {"a": STR}}]},
        {"oneOf": [{"properties": {"a": STR}}, True, {"allOf": [{"properties": {"a": STR}}]}]},
        {"properties": {"a": {}}, "allOf": [{"properties": {"a": STR}}]},
        {"patternProperties": {"^a": STR, "b": INT}},
        {"properties": {"a": {}}, "patternProperties": {"^a": STR}},
        {"patternProperties": {"(": INT, "^a": STR}},
        {"additionalProperties": STR},
        {"properties": {"b": STR}, "additionalProperties": {"$ref": "#/properties/b"}},
        {"additionalProperties": False, "allOf": [{"additionalProperties": STR}]},
        {"additionalProperties": INT, "allOf": [{"properties": {"a": STR}}]},
    ],
)
def test_a_property_is_found_wherever_the_root_declares_it(root):
    assert_reads(ParameterTypes(root)["a"], "5", "5")


def test_alternatives_of_the_root_join():
    types = ParameterTypes({"oneOf": [{"properties": {"a": STR}}, {"properties": {"a": NULL}}]})
    assert_reads(types["a"], "null", None)
    assert_reads(types["a"], "5", "5")


@pytest.mark.parametrize(
    "root", [None, {}, {"additionalProperties": False}, {"additionalProperties": True}]
)
def test_an_undeclared_name_is_untyped(root):
    assert ParameterTypes(root)["a"] == UNTYPED


def test_names_that_the_model_invents_do_not_pile_up():
    types = ParameterTypes({"properties": {"a": STR}})
    for n in range(3 * MAX_CACHED):
        assert types[f"x{n}"] == UNTYPED
    assert len(types._known) <= MAX_CACHED
    assert types["a"].string_only
    assert types["a"] is types["a"]


# --- Hostile schemas ----------------------------------------------------------------------


def cyclic_schema():
    schema = {"type": "object"}
    schema |= {"properties": {"a": schema}, "allOf": [schema], "anyOf": [schema, schema]}
    return schema


def doubling_schema(levels=30):
    defs = {str(levels): STR}
    for n in range(levels):
        defs[str(n)] = {"anyOf": [{"$ref": f"#/$defs/{n + 1}", "title": side} for side in "lr"]}
    return {"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": defs}


def deep_schema(levels, word="allOf", inside=STR):
    schema = inside
    for _ in range(levels):
        schema = {word: [schema]}
    return {"properties": {"a": schema}}


@pytest.mark.parametrize(
    "root",
    [
        *([], 5, "string", True, False),
        {"properties": [STR]},
        {"properties": {"a": 5}},
        {"properties": {"a": [STR]}},
        {"properties": {"a": {"type": 5}}},
        {"properties": {"a": {"type": [["string"], {"x": 1}, None]}}},
        {"properties": {"a": {"enum": "abc", "anyOf": 5, "allOf": {"x": 1}}}},
        {"properties": {"a": {"enum": []}}},
        {"properties": {"a": {"anyOf": []}}},
        {"properties": {"a": {"enum": [{1, 2}, [{3}], object()]}}},
        {"patternProperties": {5: INT, "(?P<": INT, "a{99999999999}": INT}},
        {"patternProperties": 5, "additionalProperties": [INT]},
        cyclic_schema(),
        doubling_schema(),
        deep_schema(100),
        deep_schema(100_000),
    ],
)
def test_a_hostile_schema_never_raises(root):
    assert ParameterTypes(root)["a"].decode("x") == "x"


def test_a_doubling_schema_is_still_read():
    assert ParameterTypes(doubling_schema())["a"].string_only


BACKTRACKS = "^(a|aa)+$"
"""Doubles its work with each letter of a name that doesn't match."""


def test_a_pattern_that_backtracks_without_end_is_given_up_and_says_nothing():
    start = time.process_time()
    types = ParameterTypes({"patternProperties": {BACKTRACKS: INT}, "additionalProperties": STR})
    assert types["a" * 60 + "!"].string_only
    assert time.process_time() - start < 2
    assert_reads(types["aaa"], "5", 5)


@pytest.mark.parametrize("name", ["Änderung", "ΔT"])
def test_a_pattern_means_the_same_to_the_typing_and_to_the_validator(name):
    schema = {"patternProperties": {r"^\p{Lu}": INT}, "additionalProperties": False}
    assert_reads(ParameterTypes(schema)[name], "5", 5)
    assert not validate(Tool("t", parameters=schema), {name: 5})
    assert validate(Tool("t", parameters=schema), {name: "5"})


# --- JSON in bounds -----------------------------------------------------------------------


def nested(levels, inside=""):
    return "[" * levels + inside + "]" * levels


@pytest.mark.parametrize("value_type", [UNTYPED, typed(ARR)])
def test_nesting_is_read_up_to_the_limit_and_no_further(value_type):
    for text in (nested(128), f"[[], {nested(127)}, [[]]]"):
        assert value_type.decode(text) == json.loads(text)
    for text in (nested(129), nested(128, "{}"), nested(5000), "[" * 100_000):
        assert value_type.decode(text) == text


def test_brackets_in_strings_do_not_nest():
    text = json.dumps(["[{" * 5000, '"\\[' * 5000, "]" * 5000])
    assert UNTYPED.decode(text) == json.loads(text)
    wide = json.dumps([[[]] * 10_000])
    assert UNTYPED.decode(wide) == json.loads(wide)


def on_a_stack_with(frames_left, work):
    depth, frame = 0, sys._getframe()
    while frame := frame.f_back:
        depth += 1

    def descend(levels):
        return work() if levels == 0 else descend(levels - 1)

    return descend(sys.getrecursionlimit() - depth - frames_left)


def test_half_the_stack_is_enough_for_any_value_and_any_schema():
    text = nested(128)
    value = json.loads(text)
    restricted = typed({"enum": [value, "x"]})
    for value_type in (UNTYPED, restricted):
        assert on_a_stack_with(500, lambda t=value_type: t.decode(text)) == value
    for word in ("allOf", "anyOf"):
        read = on_a_stack_with(500, lambda w=word: ParameterTypes(deep_schema(63, w))["a"])
        assert read.string_only
        assert ParameterTypes(deep_schema(64, word))["a"] == UNTYPED


@pytest.mark.parametrize("frames", range(16, 300, 7))
def test_a_caller_without_stack_gets_the_text_and_never_an_error(frames):
    text = nested(128)
    value = json.loads(text)
    assert on_a_stack_with(frames, lambda: UNTYPED.decode(text)) in (text, value)
    assert on_a_stack_with(frames, lambda: to_json(value)) == text
    assert on_a_stack_with(frames, lambda: to_json({"a": UNTYPED.decode(text)})) in (
        json.dumps({"a": text}),
        json.dumps({"a": value}),
    )


def test_a_schema_that_a_caller_had_no_stack_for_is_read_by_the_next():
    types = ParameterTypes(deep_schema(60, inside=INT))
    assert on_a_stack_with(60, lambda: types["a"].decode("5")) == "5"
    assert types["a"].decode("5") == 5


def test_what_the_encoder_can_t_write_by_itself_is_json_all_the_same():
    value = {'"é"': [1, 2.5, True, None, "x\n", [], {}], "big": 10**5000, "b": [[{"c": ()}]]}
    sys.set_int_max_str_digits(0)
    try:
        expected = json.dumps(value, ensure_ascii=False)
    finally:
        sys.set_int_max_str_digits(4300)
    assert to_json(value) == expected
    assert to_json(json.loads(nested(900))) == nested(900)


def test_a_value_that_holds_itself_is_an_error():
    ring = []
    ring.append(ring)
    with pytest.raises(ValueError, match="hold itself"):
        to_json(ring)


@pytest.fixture(params=[640, 4300, 0])
def host_digit_limit(request):
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(request.param)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("host_digit_limit")
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_are_exact_up_to_the_limit_whatever_the_host_allows(sign):
    longest = sign + "7" * 4300
    value = UNTYPED.decode(longest)
    assert value == int(sign + "7") * ((10**4300 - 1) // 9)  # seven times 111…1
    assert (
        to_json({"é": [value, True, 5, "x", None]}) == f'{{"é": [{longest}, true, 5, "x", null]}}'
    )
    for text in (longest + "7", f"[{longest}7]"):
        assert typed({"type": ["integer", "array"]}).decode(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, '{"a":' * 100_000, "7" * 100_000, "[" + "7" * 100_000),
        *("[" * 300 + '"' + "\\" * 200_000, "[" * 300 + '\\"' * 200_000, "[" + "[]," * 100_000),
        *("1." + "3" * 100_000, "0e999999999", "1e-999999999", " " * 10**6),
    ],
)
def test_hostile_values_return_at_once(text):
    start = time.perf_counter()
    for value_type in (
        UNTYPED,
        typed({"type": ["integer", "array"]}),
        typed({"type": ["string", "integer"]}),
    ):
        value_type.decode(text)
    assert time.perf_counter() - start < 1.0
