"""A grammar as data: what it may be made of, and what is refused when it is made."""

from __future__ import annotations

import subprocess
import sys

import pytest

from atem.errors import OptionError
from atem.grammar import MAX_PARAMETERS, TEXT, CallForm, Form, Grammar, Parameter

NUMBER = Form("json", '{"type": "integer"}')


@pytest.mark.parametrize(
    "arguments",
    [("xml", "x"), ("json", ""), ("text", "x"), ("regex", ""), ("json", "{"), ("json", "[" * 99999), ("lark", b"x")],
)  # fmt: skip
def test_a_form_is_of_a_known_kind_with_a_definition_that_can_be_one(arguments):
    with pytest.raises(OptionError):
        Form(*arguments)


@pytest.mark.parametrize("name", ["", 'a"b', "a<b", "a>b", None, 1])
def test_a_parameter_has_a_name_that_the_wire_can_write(name):
    with pytest.raises(OptionError, match="name"):
        Parameter(name)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "self", "user", "a<b", 'a"', None])
def test_a_call_has_a_name_that_a_header_can_write(name):
    with pytest.raises(OptionError, match="name"):
        CallForm(name)


def test_parameters_are_of_different_names_and_not_too_many():
    CallForm("t", tuple(Parameter(f"p{place}") for place in range(MAX_PARAMETERS)))
    for names in (["a", "a"], [f"p{place}" for place in range(MAX_PARAMETERS + 1)]):
        with pytest.raises(OptionError, match="parameters"):
            CallForm("t", tuple(map(Parameter, names)))


@pytest.mark.parametrize(
    "options",
    [
        {"answer": None}, {"answer": "json"}, {"calls": [CallForm("t")]}, {"calls": ("t",)},
        {"calls": (CallForm("t"), CallForm("t", ()))},
    ],
)  # fmt: skip
def test_a_grammar_allows_something_and_each_call_once(options):
    with pytest.raises(OptionError):
        Grammar(**options)


@pytest.mark.parametrize("parts", [[Parameter("a")], ("a",), "a"])
def test_the_parts_of_a_call_are_parameters(parts):
    with pytest.raises(OptionError, match="parameters"):
        CallForm("t", parts)


def test_the_same_grammar_is_equal_and_hashes_so():
    def made():
        return Grammar(NUMBER, (CallForm("t", (Parameter("a", NUMBER, required=True),)),))

    assert made() == made()
    assert len({made(), made(), Grammar(TEXT)}) == 2


def test_grammars_as_data_load_no_library():
    code = "import sys, atem.grammar, atem.engine; assert not {'llguidance', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
