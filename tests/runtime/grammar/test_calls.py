"""A turn that has to call: what a random model writes is a call that may be made."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.grammar import TEXT, CallForm, Form, Grammar, Parameter
from atem.parser.api import parse
from atem.runtime.tokens import stop_ids
from atem.testing.scripted import wire_ids
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from atem.tools import Tool
from tests.parser.spelling import block, parameter
from tests.runtime.grammar.asking import DICE, PROMPT, json_form, reference, torch_engine, written

TOKENIZER = wrap(tiny_tokenizer())
STOPS = stop_ids(TOKENIZER, None)

NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}
FLAGS = {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}
KINDS = {
    "text": (Form("regex", "(?s:.{0,5})"), {"type": "string", "maxLength": 5}),
    "word": (Form("regex", "r|w"), {"enum": ["r", "w"]}),
    "number": (json_form(NUMBER), NUMBER),
    "flags": (json_form(FLAGS), FLAGS),
}  # fmt: skip
"""How a value is written, and the schema that says the same."""


def declared(name, parameters):
    """A tool and its form: ``parameters`` are (name, kind, required)."""
    schema = {
        "type": "object",
        "properties": {key: KINDS[kind][1] for key, kind, _ in parameters},
        "required": [key for key, _, required in parameters if required],
        "additionalProperties": False,
    }
    form = tuple(Parameter(key, KINDS[kind][0], required) for key, kind, required in parameters)
    return Tool(name, parameters=schema), CallForm(name, form)


PARAMETERS = st.lists(
    st.tuples(st.sampled_from(("a", "b c", "é", "to=x")), st.sampled_from(sorted(KINDS)), st.booleans()),
    max_size=4, unique_by=lambda one: one[0],
)  # fmt: skip


@settings(max_examples=30)
@given(
    st.dictionaries(st.sampled_from(("read", "ns.post", "r-2")), PARAMETERS, min_size=1),
    st.integers(0, 99),
)
def test_a_turn_that_has_to_call_calls_what_it_may_with_arguments_that_fit(tools, seed):
    made = [declared(name, parameters) for name, parameters in tools.items()]
    grammar = Grammar(None, tuple(form for _, form in made))
    wrote = written(
        DICE,
        grammar,
        tools=[tool for tool, _ in made],
        seed=seed,
        reasoning_budget=5,
        max_tokens=500,
    )
    assert wrote.finish == "length" or wrote.turn.calls
    for call in wrote.turn.calls:
        (schema,) = [tool.parameters for tool, _ in made if tool.wire_name == call.wire_name]
        jsonschema.validate(json.loads(call.arguments_json), schema)
    if wrote.finish == "stop":
        assert not wrote.turn.rejected
        assert not wrote.turn.content


READ = declared("read", [("path", "text", True), ("n", "number", False)])
GO = declared("go", [])
BOTH = [READ[0], GO[0]]
MUST = Grammar(None, (READ[1], GO[1]))


@pytest.mark.parametrize("seed", [None, *range(3)])
def test_all_engines_make_the_same_calls(seed):
    one, other = (
        written(engine, MUST, tools=BOTH, seed=seed, reasoning_budget=4, max_tokens=200)
        for engine in (reference(), torch_engine())
    )
    assert one.ids == other.ids


def test_both_tools_are_called_by_some_seed_and_both_spellings_of_a_name():
    wrote = [written(DICE, MUST, tools=BOTH, seed=seed, reasoning_budget=0) for seed in range(12)]
    assert {call.name for one in wrote for call in one.turn.calls} == {"read", "go"}
    assert {call.raw_name for one in wrote for call in one.turn.calls} >= {"go", "go.go"}


def test_the_only_tool_that_may_be_called_is():
    wrote = written(DICE, Grammar(None, (GO[1],)), tools=BOTH, seed=1, reasoning_budget=0)
    assert {call.name for call in wrote.turn.calls} == {"go"}


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_with_a_form_and_calls_come_in_one_grammar(seed):
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    grammar = Grammar(json_form({**schema, "additionalProperties": False}), (READ[1], GO[1]))
    wrote = written(DICE, grammar, tools=BOTH, seed=seed, reasoning_budget=0)
    assert wrote.finish == "stop"
    if wrote.turn.content:
        jsonschema.validate(json.loads(wrote.turn.content), schema)
    else:
        assert wrote.turn.calls


def test_a_call_that_is_the_models_own_has_its_header_held_alone():
    grammar = Grammar(None, (CallForm("read"),))
    wrote = written(DICE, grammar, tools=BOTH, seed=3, reasoning_budget=0, max_tokens=60)
    header, _, body = wrote.text.partition("<|message|>")
    assert header in (" to=read", " to=read.read")
    assert not body.startswith("<atem:function_calls>")


def test_a_call_that_is_cut_is_none():
    wrote = written(DICE, MUST, tools=BOTH, seed=1, reasoning_budget=0, max_tokens=20)
    assert (wrote.finish, wrote.turn.calls) == ("length", ())


# What a matcher takes, text by text


def taken(grammar: Grammar, text: str) -> bool:
    """Whether a message may be ``text``, from its recipient on."""
    matcher = DICE.vocabulary.compiled(grammar).opening(thinking=True)
    ids = wire_ids(f"<|start|>assistant to={text}", TOKENIZER)
    return matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()


def calling(*parameters: str, name: str = "t", inner: str | None = None) -> str:
    lines = "".join(f"{one}\n" for one in parameters)
    invoke = f'<atem:invoke name="{inner or name}">\n{lines}</atem:invoke>'
    return f"{name}<|message|>{block(invoke)}"


def held(*parameters: Parameter, others: bool = False) -> Grammar:
    return Grammar(None, (CallForm("t", parameters, others),))


A, B, C = (
    Parameter(name, TEXT, required) for name, required in (("a", True), ("b", True), ("c", False))
)


@pytest.mark.parametrize("order", ["ab", "ba", "abc", "acb", "bac", "bca", "cab", "cba"])
def test_parameters_come_in_any_order(order):
    assert taken(held(A, B, C), calling(*(parameter(key, "x") for key in order)))


@pytest.mark.parametrize("order", ["", "a", "b", "c", "ac", "aba", "abd", "abcc"])
def test_one_that_is_missing_twice_or_unknown_is_not_taken(order):
    assert not taken(held(A, B, C), calling(*(parameter(key, "x") for key in order)))


@pytest.mark.parametrize("order", ["a", "xa", "ax", "xay", "axx"])
def test_further_ones_have_any_name(order):
    parameters = [parameter(key, "1") for key in order]
    assert taken(held(A, others=True), calling(*parameters))
    assert not taken(
        held(A, others=True), calling(*(one for one in parameters if 'name="a"' not in one))
    )


CLOSER = "</atem:parameter>"


@pytest.mark.parametrize("value", ["", " ", "a\nb\r\n", "<b>é🌊", f"x{CLOSER}y", f"{CLOSER}{CLOSER}", f"{CLOSER}\n<x>", "<atem:parameter name='q'>", "</atem:function_calls>", "null", '{"a"', "<|eot|>"[:-1]])  # fmt: skip
def test_a_bare_text_may_be_anything_that_the_parser_reads_back(value):
    for grammar, parameters in (
        (held(A), ("a",)),
        (held(A, B), ("a", "b")),
        (held(A, B), ("b", "a")),
    ):
        text = calling(*(parameter(key, value) for key in parameters))
        assert taken(grammar, text)
        (call,) = parse(f" to={text}<|eot|>", tools=[Tool("t", parameters=STRINGS)]).calls
        assert call.arguments == dict.fromkeys(parameters, value)


STRINGS = {"type": "object", "properties": {key: {"type": "string"} for key in "abc"}}


@pytest.mark.parametrize("end", [f"{CLOSER}\n</atem:invoke>", f"{CLOSER}</atem:invoke>", f"{CLOSER} \r\n</atem:invoke>"])  # fmt: skip
def test_where_the_parser_ends_a_value_the_grammar_does(end):
    assert not taken(held(A, B), calling(parameter("a", f"x{end}y"), parameter("b", "")))
    assert not taken(held(A), calling(parameter("a", f"x{CLOSER}<atem:parameter y")))


@pytest.mark.parametrize(
    ("schema", "fit", "unfit"),
    [
        ({"type": "integer"}, ["0", "-12"], ["", "1.5", '"1"', "true", " 1"]),
        ({"type": "boolean"}, ["true", "false"], ["True", "1"]),
        ({"type": "array", "items": {"type": "string"}}, ["[]", '["a", "é"]'], ["a", "[1]"]),
        ({"type": ["integer", "null"]}, ["7", "null"], ["none"]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"enum": [1, None]}}}, ["1", "null"], ["2"]),
    ],
)
def test_what_is_no_string_is_json(schema, fit, unfit):
    grammar = held(Parameter("a", json_form(schema), required=True))
    assert all(taken(grammar, calling(parameter("a", text))) for text in fit)
    assert not any(taken(grammar, calling(parameter("a", text))) for text in unfit)


@pytest.mark.parametrize("text", ["foo\n", "+a\n+b\nfoo\n"])
def test_a_bare_text_may_be_of_a_lark_grammar(text):
    form = Form("lark", 'start: line* "foo" LF\nline: "+" /(.*)/ LF -> line\n%import common.LF')
    grammar = held(Parameter("a", form, required=True))
    assert taken(grammar, calling(parameter("a", text)))
    assert not taken(grammar, calling(parameter("a", text[:-1])))
    assert not taken(grammar, calling(parameter("a", f"-{text}")))


def test_names_are_spelled_as_they_are_or_doubled():
    grammar = Grammar(None, tuple(CallForm(name, ()) for name in ("w", "ns.fn", "b", "b.b")))
    for header in ("w", "w.w"):
        for inner in ("w", "w.w"):
            assert taken(grammar, calling(name=header, inner=inner))
    assert taken(grammar, calling(name="ns.ns.fn", inner="ns.fn"))
    assert not taken(grammar, calling(name="w.w.w"))
    assert not taken(grammar, calling(name="fn"))
    assert not taken(grammar, calling(name="b", inner="b.b"))
    assert not taken(grammar, calling(name="w", inner="ns.fn"))


@pytest.mark.parametrize("name", ["wéird", "a'b\\c", "🌊", "x/y:z", "a|b"])
def test_any_name_that_the_wire_can_write_is_taken(name):
    grammar = Grammar(None, (CallForm(name, (Parameter(name, TEXT, required=True),)),))
    assert taken(grammar, calling(parameter(name, name), name=name))


@pytest.mark.parametrize("many", [59, 60])
def test_as_many_parameters_as_are_allowed_work(many):
    names = [f"p{place}" for place in range(many)]
    grammar = held(*(Parameter(name, TEXT, required=True) for name in names))
    assert taken(grammar, calling(*(parameter(name, "") for name in reversed(names))))
    assert not taken(grammar, calling(*(parameter(name, "") for name in names[1:])))


def test_a_call_ends_its_message_and_may_be_followed_by_another():
    text = calling(parameter("a", "x"))
    assert taken(held(A), f"{text}<|eom|>")
    assert not taken(held(A), f"{text}\n<|eom|>")
    assert not taken(held(A), f"{text}{text.partition('>')[2]}")


def test_the_prompt_may_have_opened_the_call():
    wrote = written(
        DICE, MUST, tools=BOTH, seed=2, prompt=f"{PROMPT} to=read<|message|>", channel="read"
    )
    assert wrote.text.startswith("<atem:function_calls>\n<atem:invoke name=")
    assert re.search('name="read(.read)?"', wrote.text)
    assert wrote.turn.calls[0].name == "read"
