"""Grammars of strangers that would end the process: they are refused before the library sees them."""

from __future__ import annotations

import json

import pytest

from atem.errors import Unsupported
from atem.grammar import CallForm, Form, Grammar, Parameter
from atem.runtime.grammar.compiled import fault
from atem.runtime.grammar.excess import DEEP, FOREIGN, LARGE, MANY
from atem.runtime.grammar.vocabulary import Vocabulary
from atem.runtime.tokens import stop_ids
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap


def to(reference):
    return {"$ref": reference}


def chain(link, length, last=None):
    """Schemas each of which leads to the next by ``link``."""
    defs = {f"d{n}": link(to(f"#/$defs/d{n + 1}")) for n in range(length)}
    return {"$defs": {**defs, f"d{length}": last or {"type": "string"}}, **to("#/$defs/d0")}


def obj(inner):
    return {"type": "object", "properties": {"x": inner}, "required": ["x"]}


LINKS = {
    "reference": lambda r: r,
    "property": obj,
    "any of": lambda r: {"anyOf": [r, {"type": "integer"}]},
    "items": lambda r: {"type": "array", "items": r, "minItems": 1},
    "pattern": lambda r: {"type": "object", "patternProperties": {"^a": r}},
    "all of one": lambda r: {"allOf": [r]},
}
DOUBLED = {
    "all of two": lambda r: {"allOf": [r, r]},
    "in an any of": lambda r: {"anyOf": [{"allOf": [r, r]}]},
    "two properties of one name": lambda r: {"allOf": [obj(r), obj({"title": "t", "allOf": [r]})]},
}
LARK = {
    "rules": ("\n".join(["start: r0", *(f"r{n}: r{n + 1}" for n in range(4000)), 'r4000: "a"']), MANY),
    "terminals": ("\n".join(["start: T0", *(f"T{n}: T{n + 1}" for n in range(4000)), 'T4000: "a"']), MANY),
    "schema": ('start: %json {"type": "string"}', FOREIGN),
    "schema behind what looks like a string": ('start: /\n"/ %json {"type": "string"} # "', FOREIGN),
    "all at once": ("start: A\nA: /.*a.{9}/ & /.*a.{8}/", FOREIGN),
    "behind a comment": ('# "\nstart: A\nA: /a/ & /b/ // "', FOREIGN),
}  # fmt: skip


def schema(value):
    return Form("json", json.dumps(value))


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_a_schema_that_leads_too_deep_is_refused(link):
    assert fault(schema(chain(link, 3000))) == DEEP


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_a_schema_of_many_steps_is_followed(link):
    assert fault(schema(chain(link, 100))) is None


@pytest.mark.parametrize("link", DOUBLED.values(), ids=DOUBLED)
def test_a_schema_that_doubles_at_every_step_is_refused(link):
    assert fault(schema(chain(link, 40, {"type": "string", "pattern": "a"}))) == LARGE


def test_a_schema_that_refers_to_itself_is_followed():
    node = {**obj({"type": "string"}), "additionalProperties": False}
    node["properties"]["next"] = {"anyOf": [to("#/$defs/node"), {"type": "null"}]}
    assert fault(schema({"$defs": {"node": node}, **to("#/$defs/node")})) is None


@pytest.mark.parametrize(("definition", "why"), LARK.values(), ids=LARK)
def test_a_lark_grammar_with_a_schema_of_its_own_or_without_end_is_refused(definition, why):
    assert fault(Form("lark", definition)) == why


def test_a_usual_lark_grammar_is_read():
    definition = (
        'start: "*** Begin" LF hunk+ "*** End" LF?\n'
        'hunk: ("+" | "-" | " ") /(.*)/ LF // "a" & b\n'
        "%import common.LF"
    )
    assert fault(Form("lark", definition)) is None


@pytest.mark.parametrize("where", ["answer", "call"])
def test_no_engine_compiles_what_is_refused(where):
    form = schema(chain(LINKS["reference"], 3000))
    calls = (CallForm("t", (Parameter("a", form),)),)
    grammar = Grammar(form) if where == "answer" else Grammar(None, calls)
    tokenizer = wrap(tiny_tokenizer())
    with pytest.raises(Unsupported, match="leads through"):
        Vocabulary(tokenizer, stop_ids(tokenizer, None), 512).compiled(grammar)
