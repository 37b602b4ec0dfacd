"""Laws of the typing of arguments, with ``json`` and ``jsonschema`` as the judges."""

import json
from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from atem.parser.values import UNTYPED, ParameterTypes, escape_json, to_json

STR, INT = {"type": "string"}, {"type": "integer"}


def typed(schema, **root):
    return ParameterTypes({"type": "object", "properties": {"a": schema}, **root})["a"]


def assert_reads(value_type, text, expected):
    # repr tells True from 1, 3 from 3.0 and -0.0 from 0.0.
    assert repr(value_type.decode(text)) == repr(expected)


any_text = st.text(alphabet=st.characters(exclude_categories=[]), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
OF_TYPE = {
    "string": any_text,
    "integer": st.integers(),
    "number": numbers,
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(values, max_size=3),
    "object": st.dictionaries(any_text, values, max_size=3),
}
NAMES = sorted(OF_TYPE)
NAMES_BUT_STRING = [name for name in NAMES if name != "string"]
texts = (
    any_text
    | values.map(json.dumps)
    | st.tuples(st.sampled_from(["", " ", "\n"]), values.map(json.dumps)).map("".join)
    | st.sampled_from(["True", "NaN", "1e999", "3.0", "007", "[NaN]", '"x"', "nul"])
)
WORDS = "type enum const anyOf oneOf allOf $ref nullable properties patternProperties"
WORDS += " additionalProperties a string integer null # #/properties/a"
schema_words = st.sampled_from(WORDS.split())
nonsense = st.recursive(
    schema_words | st.booleans() | st.none() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(schema_words, inner, max_size=4),
    max_leaves=15,
)

LOCAL = {"S": STR, "I": INT}


def schemas(names, references):
    plain = st.one_of(
        st.sampled_from(names).map(lambda name: {"type": name}),
        st.lists(st.sampled_from(names), min_size=1, unique=True).map(
            lambda found: {"type": found}
        ),
        st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in references]),
    )
    return st.recursive(
        plain,
        lambda inner: st.fixed_dictionaries(
            {}, optional={w: st.lists(inner, min_size=1, max_size=3) for w in ("anyOf", "allOf")}
        ),
        max_leaves=5,
    )


LOOK_ALIKES = ["1", "2.0", "true", "null", "[1]", '{"a": 1}']
members = st.sampled_from([1, 2.0, 2.5, True, False, None, [1], [True], {"a": 1}, "x"])


def validator(schema):
    return Draft202012Validator({"allOf": [schema], "$defs": LOCAL})


def json_equal(a, b):
    return Draft202012Validator({"const": a}).is_valid(b)


def refuse(constant):
    raise ValueError(constant)


def is_json(text):
    """Whether it is JSON, which has no NaN and no infinity, of numbers that floats can hold."""
    try:
        value = json.loads(text, parse_constant=refuse)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def template_writes(value):
    """wire_format 2: JSON for booleans, null and containers, ``str()`` for the rest."""
    if value is None or isinstance(value, (bool, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


@given(st.data(), st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
def test_what_the_template_writes_reads_back(data, names):
    value = data.draw(st.one_of(OF_TYPE[name] for name in names))
    # A string that looks like another admitted kind is lost on the wire (wire_format 2).
    assume(not isinstance(value, str) or names == ["string"] or not is_json(value))
    assume(
        not isinstance(value, str)
        or "boolean" not in names
        or value.lower() not in ("true", "false")
    )
    assert_reads(typed({"type": names}), template_writes(value), value)


@given(nonsense, any_text | texts)
def test_decode_never_raises(schema, text):
    for types in (ParameterTypes(schema), ParameterTypes({"properties": {"a": schema}})):
        types["a"].decode(text)


@given(texts)
def test_an_untyped_value_is_what_json_says(text):
    assert_reads(UNTYPED, text, json.loads(text) if is_json(text) else text)


@given(schemas(NAMES, ["S", "I"]), texts)
def test_a_decoded_value_is_one_that_the_schema_admits(schema, text):
    admits = validator(schema).is_valid
    # A contradiction admits nothing, and is read as no schema.
    assume(any(admits(sample) for sample in ("x", 1, 1.5, True, None, [], {})))
    value = typed(schema, **{"$defs": LOCAL}).decode(text)
    assert value is text or admits(value)


@given(schemas(NAMES_BUT_STRING, ["I"]), st.lists(values, min_size=3))
def test_a_json_value_that_the_schema_admits_is_decoded(schema, candidates):
    admits = validator(schema).is_valid
    assume(not admits("x"))
    for value in filter(admits, [*candidates, 1, 2.0, 2.5, True, None, [1], {}]):
        text = json.dumps(value)
        decoded = typed(schema, **{"$defs": LOCAL}).decode(text)
        # An integer is what its literal says, which a float may not be able to hold.
        assert json_equal(decoded, value) or Decimal(text) == decoded


@given(st.sampled_from(LOOK_ALIKES), st.lists(members))
def test_a_listed_text_is_kept_unless_the_value_it_writes_is_listed_too(text, others):
    admits = validator({"enum": [text, *others]}).is_valid
    decoded = typed({"enum": [text, *others]}).decode(text)
    assert json_equal(decoded, json.loads(text) if admits(json.loads(text)) else text)


@given(st.lists(members, min_size=1), st.data())
def test_a_listed_value_reads_back(listed, data):
    value = data.draw(st.sampled_from(listed))
    decoded = typed({"enum": listed}).decode(template_writes(value))
    assert json_equal(decoded, value)


@given(st.lists(any_text))
def test_the_pieces_of_a_string_escape_to_the_pieces_of_its_literal(pieces):
    whole = "".join(pieces)
    assert '"' + "".join(map(escape_json, pieces)) + '"' == json.dumps(whole, ensure_ascii=False)


@given(values)
def test_to_json_is_json_dumps_with_non_ascii_kept(value):
    assert to_json(value) == json.dumps(value, ensure_ascii=False)
