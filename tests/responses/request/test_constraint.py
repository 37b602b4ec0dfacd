"""What a request asks of a turn, as a grammar: exact where the wire can show it, loose elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.engine import EngineInfo
from atem.grammar import TEXT, CallForm, Form, Grammar, Parameter
from atem.render.values import encode_value
from atem.responses.constraint import call_form, grammar_of
from atem.responses.faults import ApiError
from atem.responses.tools import ClientTools
from atem.runtime.generation import FEATURES
from tests.parser.spelling import parameter
from tests.responses.request.asking import ask, function
from tests.runtime.grammar.asking import DICE, written
from tests.runtime.grammar.test_calls import calling, held, taken

if TYPE_CHECKING:
    from atem.responses.ask import Ask

HELD = EngineInfo("muse", "test", 4096, frozenset({1}), FEATURES | {"grammar"})
FREE = EngineInfo("muse", "test", 4096, frozenset({1}), FEATURES)


def grammar(made: Ask) -> Grammar | None:
    return made.engine_request(HELD).grammar


def of(schema: Any, **fields: Any) -> CallForm:
    """The form of a call to ``t`` with these parameters."""
    (tool,) = ClientTools.of([function("t", parameters=schema, **fields)])
    return call_form(tool)


def record(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def wanted(schema: Any = None, **fields: Any) -> dict[str, Any]:
    schema = (
        record({"n": {"type": "integer"}}, additionalProperties=False) if schema is None else schema
    )
    return {
        "format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True, **fields}
    }


# What is asked


def test_an_engine_without_grammars_is_asked_for_none() -> None:
    made = ask(tools=[function()], tool_choice="required", text=wanted())
    assert made.engine_request(FREE).grammar is None
    assert made.must == {"call", "format"}


@pytest.mark.parametrize(
    "body",
    [
        {}, {"tools": [function()]}, {"text": {"format": {"type": "text"}}},
        {"text": wanted(strict=False)}, {"tools": [function()], "parallel_tool_calls": False},
        {"tools": [{"type": "custom", "name": "c"}]}, {"tool_choice": "none"},
    ],
)  # fmt: skip
def test_where_nothing_is_asked_of_a_turn_there_is_no_grammar(body: dict[str, Any]) -> None:
    assert grammar(ask(**body)) is None


def test_a_strict_format_is_the_form_of_the_answer() -> None:
    made = grammar(ask(text=wanted()))
    assert made == Grammar(Form("json", json.dumps(wanted()["format"]["schema"])))
    assert grammar(ask(text={"format": {"type": "json_object"}})) == Grammar(
        Form("json", '{"type": "object"}')
    )


def test_with_tools_an_answer_that_fits_or_a_call_will_do() -> None:
    made = grammar(ask(text=wanted(), tools=[function("a"), function("b")]))
    assert made is not None
    assert made.answer != TEXT
    assert made.calls == (CallForm("a"), CallForm("b"))


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"a", "mail.b", "c"}),
        ({"type": "function", "name": "a"}, {"a"}),
        ({"type": "function", "name": "b", "namespace": "mail"}, {"mail.b"}),
        ({"type": "custom", "name": "c"}, {"c"}),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}, {"type": "custom", "name": "c"}]}, {"a", "c"}),
    ],
)  # fmt: skip
def test_a_turn_that_has_to_call_has_no_answer_and_no_other_calls(
    choice: Any, names: set[str]
) -> None:
    space = {"type": "namespace", "name": "mail", "tools": [function("b")]}
    tools = [function("a"), space, {"type": "custom", "name": "c"}]
    made = grammar(ask(tools=tools, tool_choice=choice, text=wanted()))
    assert made is not None
    assert made.answer is None
    assert {call.name for call in made.calls} == names
    assert all(call.parameters is not None for call in made.calls)


@pytest.mark.parametrize("choice", ["none", {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a"}]}])  # fmt: skip
def test_a_choice_that_leaves_tools_out_leaves_the_answer_free(choice: Any) -> None:
    made = grammar(ask(tools=[function("a"), function("b")], tool_choice=choice))
    assert made == Grammar(TEXT, () if choice == "none" else (CallForm("a"),))


def test_a_strict_function_is_held_to_its_schema_and_others_to_their_names() -> None:
    strict = function("s", parameters=record({"n": {"type": "integer"}}), strict=True)
    made = grammar(ask(tools=[function("a"), strict]))
    number = Form("json", '{"type": "integer"}')
    exact = CallForm("s", (Parameter("n", number, required=True),))
    assert made == Grammar(TEXT, (CallForm("a"), exact))


@pytest.mark.parametrize(
    ("said", "exact"), [({}, True), ({"strict": None}, True), ({"strict": False}, False)]
)
def test_a_function_that_does_not_say_is_strict_if_its_schema_may_be(
    said: dict[str, Any], exact: bool
) -> None:
    schema = record({"n": {"type": "integer"}}, additionalProperties=False)
    made = grammar(ask(tools=[function("s", parameters=schema, **said)]))
    assert (made is not None) == exact
    assert (
        grammar(ask(tools=[function("s", parameters={**schema, "required": []}, **said)])) is None
    )


def test_the_prompt_opens_no_channel_where_a_grammar_does() -> None:
    made = ask(tools=[function()], tool_choice="required")
    assert (made.channel(FREE), made.channel(HELD)) == ("read", None)


def test_a_prompt_alone_and_a_compaction_are_held_to_nothing() -> None:
    body = {"tools": [function()], "tool_choice": "required", "text": wanted()}
    assert grammar(ask(**body, prompt_cache_options={"prewarm": True})) is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [({"pattern": "^(?=.*a)b"}, "look-around"), ({"format": "colour"}, "Unknown format: colour")],
)
def test_a_format_that_can_not_be_held_to_is_refused_with_the_reason(
    word: dict[str, str], reason: str
) -> None:
    schema = record({"a": {"type": "string", **word}}, additionalProperties=False)
    made = ask(text=wanted(schema))
    with pytest.raises(ApiError, match=reason) as caught:
        made.engine_request(HELD)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json_schema")
    assert caught.value.param == "text.format.schema"
    assert made.engine_request(FREE).grammar is None


# The form of a value

LEAVES = {
    "text": ({"type": "string"}, st.text("ab<\n é🌊", max_size=5)),
    "short": ({"type": "string", "maxLength": 3, "minLength": 1}, st.text("aé\n", min_size=1, max_size=3)),
    "enum": ({"enum": ["r/w", "a b", "", "é\n"]}, st.sampled_from(["r/w", "a b", "", "é\n"])),
    "mixed": ({"enum": ["r", 1, None, True]}, st.sampled_from(["r", 1, None, True])),
    "const": ({"const": "x|y"}, st.just("x|y")),
    "pattern": ({"type": "string", "pattern": "^[a-c]+/\\d$"}, st.from_regex("[a-c]+/[0-9]", fullmatch=True)),
    "inside": ({"type": "string", "pattern": "b+"}, st.text("abc", min_size=1).map(lambda text: f"{text}b")),
    "integer": ({"type": "integer", "minimum": -5}, st.integers(-5, 10**20)),
    "number": ({"type": "number"}, st.floats(-1e6, 1e6, width=32)),
    "flag": ({"type": "boolean"}, st.booleans()),
    "nullable": ({"type": ["string", "null"]}, st.none() | st.text("ab", max_size=3)),
    "maybe": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, st.none() | st.integers(0, 9)),
    "list": ({"type": "array", "items": {"type": "string"}}, st.lists(st.text('a"\\é\n<', max_size=3), max_size=3)),
    "record": ({"type": "object", "properties": {"k": {"$ref": "#/$defs/n"}}}, st.builds(lambda n: {"k": n}, st.integers(0, 9))),
    "any": ({}, st.none() | st.booleans() | st.integers() | st.text('a{"', max_size=3)),
}  # fmt: skip
DEFS = {"n": {"type": "integer"}}


@settings(max_examples=60)
@given(st.data(), st.lists(st.sampled_from(sorted(LEAVES)), min_size=1, max_size=3, unique=True))
def test_what_the_schema_allows_may_be_written(data: Any, kinds: list[str]) -> None:
    schema = record({kind: LEAVES[kind][0] for kind in kinds}, **{"$defs": DEFS})
    arguments = {kind: data.draw(LEAVES[kind][1], kind) for kind in kinds}
    jsonschema.validate(arguments, schema)
    shown = [parameter(key, encode_value(value, key)) for key, value in arguments.items()]
    assert taken(Grammar(None, (of(schema),)), calling(*data.draw(st.permutations(shown))))


EXACT = sorted(LEAVES.keys() - {"text", "nullable", "any", "number"})


@settings(max_examples=30)
@given(st.lists(st.sampled_from(EXACT), max_size=3, unique=True), st.integers(0, 9))
def test_what_is_written_is_what_the_schema_allows(kinds: list[str], seed: int) -> None:
    schema = record({kind: LEAVES[kind][0] for kind in kinds}, **{"$defs": DEFS})
    (tool,) = ClientTools.of([function("t", parameters=schema)])
    wrote = written(
        DICE, Grammar(None, (call_form(tool),)), tools=[tool.tool], seed=seed, reasoning_budget=0,
        max_tokens=250,
    )  # fmt: skip
    assert wrote.finish == "length" or wrote.turn.calls
    for call in wrote.turn.calls:
        jsonschema.validate(json.loads(call.arguments_json), schema)


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "string"}, TEXT),
        ({"type": ["string", "integer"]}, TEXT),
        (True, TEXT),
        ({"type": "string", "pattern": "^a|b$"}, TEXT),
        ({"type": "string", "pattern": "(?!a)b"}, TEXT),
        ({"type": "string", "pattern": "^a{1000}$"}, TEXT),
        ({"type": "string", "pattern": "^a{0,1000}$"}, TEXT),
        ({"type": "string", "pattern": "^((a{9}){9}){9}$"}, TEXT),
        ({"type": "string", "maxLength": 9999}, TEXT),
        ({"type": "array", "uniqueItems": True}, Form("json", '{"type": ["array"]}')),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, Form("json", '{"type": ["object"]}')),
        ({"not": {"type": "string"}}, TEXT),
    ],
)  # fmt: skip
def test_what_can_not_be_followed_is_left_open(schema: Any, form: Form) -> None:
    (found,) = of(record({"a": schema})).parameters or ()
    assert found == Parameter("a", form, required=True)


@pytest.mark.parametrize(
    ("schema", "others"),
    [
        ({}, True), ({"type": "object"}, True), (record({f"p{place}": {} for place in range(61)}), True), (record({"a": {}}), False),
    ],
)  # fmt: skip
def test_parameters_that_can_not_be_told_may_have_any_name(schema: Any, others: bool) -> None:
    assert of(schema).others == others


def test_a_required_parameter_that_is_not_declared_has_to_be_there() -> None:
    schema = {**record({"a": {"type": "integer"}}), "required": ["b"]}
    assert taken(Grammar(None, (of(schema),)), calling(parameter("b", "x")))
    assert not taken(Grammar(None, (of(schema),)), calling(parameter("a", "1")))


def custom(**form: str) -> Grammar | None:
    tool = {"type": "custom", "name": "t", "format": {"type": "grammar", **form}}
    return grammar(ask(tools=[tool]))


@pytest.mark.parametrize(
    ("syntax", "definition", "fit", "unfit"),
    [
        ("regex", r"[a-z]{2}/\d", "ab/1", "ab/1x"),
        ("lark", 'start: "+" WORD LF\nWORD: /[a-z]+/\n%import common.LF', "+abc\n", "+abc"),
    ],
)
def test_a_custom_tool_is_held_to_its_grammar(
    syntax: str, definition: str, fit: str, unfit: str
) -> None:
    made = custom(syntax=syntax, definition=definition)
    assert made is not None
    assert made.answer == TEXT
    assert taken(made, calling(parameter("input", fit)))
    assert not taken(made, calling(parameter("input", unfit)))


@pytest.mark.parametrize(
    ("syntax", "definition"),
    [
        ("regex", "(?<=a)b"), ("regex", "a" * 70000), ("regex", ""), ("regex", "a{1000}"),
        ("lark", "start: nothing"), ("lark", "%%%"), ("lark", ""),
    ],
)  # fmt: skip
def test_a_custom_grammar_that_can_not_be_compiled_leaves_the_text_open(
    syntax: str, definition: str
) -> None:
    made = custom(syntax=syntax, definition=definition)
    assert made == Grammar(TEXT, (CallForm("t", (Parameter("input", TEXT, required=True),)),))


def test_more_than_is_followed_is_left_open_and_still_called() -> None:
    tools = [function(f"t{n}", parameters=record({f"p{k}": {"type": "integer"} for k in range(50)})) for n in range(9)]  # fmt: skip
    made = grammar(ask(tools=tools, tool_choice="required"))
    assert made == Grammar(None, tuple(CallForm(f"t{n}", (), others=True) for n in range(9)))


def test_one_grammar_is_the_same_each_time() -> None:
    made = ask(tools=[function()], tool_choice="required", text=wanted())
    assert grammar_of(made.choice, made.tools, made.format) == grammar(made)
    assert held() == held()
