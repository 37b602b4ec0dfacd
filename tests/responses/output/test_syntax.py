"""Inputs of custom tools against their grammars, within bounds."""

from __future__ import annotations

import sys
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from atem.errors import MissingExtra
from atem.responses.output.recognizer import read
from atem.responses.output.syntax import Syntax

PATCHES = """
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | update
add: "*** Add File: " name LF line+
update: "*** Update File: " name LF change*
name: /(.+)/
line: "+" /(.*)/ LF
change: ("@@" | "@@ " /(.+)/ | ("+" | "-" | " ") /(.*)/) LF
%import common.LF
"""
"""Has a terminal that may match nothing, which lark's own lexers refuse."""

GOOD = "*** Begin Patch\n*** Update File: a\n@@ def f\n-x\n+\n*** Add File: b\n+y\n*** End Patch\n"


@pytest.mark.parametrize("text", [GOOD, GOOD[:-1], GOOD.replace("a\n@@ def f\n-x\n+\n", "a\n")])
def test_a_patch_is_accepted(text: str) -> None:
    assert Syntax("lark", PATCHES).fault(text) is None


@pytest.mark.parametrize(
    "text", ["", GOOD[:-8], f" {GOOD}", GOOD.replace("@@", "!!"), GOOD.replace("+y\n", "")]
)
def test_what_is_no_patch_is_not(text: str) -> None:
    assert Syntax("lark", PATCHES).fault(text) is not None


SUMS = """
start: sum
sum: sum "+" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")" | empty "!"
empty:
NUMBER: /[0-9]+/
%ignore " "
"""


@given(st.text(st.sampled_from("12+*() !"), max_size=12))
def test_the_answer_is_larks(text: str) -> None:
    """Where lark's own parser can read the grammar."""
    parser = Lark(SUMS, parser="earley", lexer="dynamic")
    try:
        parser.parse(text)
        expected = True
    except LarkError:
        expected = False
    recognizer = read(SUMS)
    assert recognizer is not None
    assert recognizer.accepts(text) is expected


@pytest.mark.parametrize(
    "syntax",
    [
        Syntax("regex", "(a+)+b"),
        Syntax("regex", "(.*)*(.*)*(.*)*(.*)*b"),
        Syntax("lark", 'start: a\na: a a | "a" |'),
        Syntax("lark", "start: /(a+)+b/"),
        Syntax("lark", "start: x+\nx: /(a|aa)+(a|aa)+c/ | /a/"),
        Syntax("lark", "start: " + " ".join(f'"{n}"?' for n in range(60))),
        Syntax("lark", "start: " + " ".join(f'["{n}"]' for n in range(60))),
        Syntax("lark", "start: " + '("a" | "b") ' * 60),
        Syntax("lark", 'start: ("a" | "b")~40'),
        Syntax("lark", 'start: f{"a"}\nf{x}: "b" | f{f{x}}'),
        Syntax(
            "lark",
            "\n".join(
                ["start: A0", *(f"A{n}: A{n + 1}~2 A{n + 1}" for n in range(60)), 'A60: "a"']
            ),
        ),
        Syntax(
            "lark",
            "\n".join(['start: "a"', *(f"r{n}: r{n + 1}" for n in range(4000)), 'r4000: "b"']),
        ),
        Syntax("lark", 'start: A\n%extend A: A A\nA: "a"'),
        Syntax("lark", "start: /((a{1000}){1000}){1000}/"),
        Syntax("regex", "((a{1000}){1000}){1000}"),
        Syntax("regex", "(" * 30000 + "a" + ")" * 30000),
    ],
)
def test_no_grammar_takes_for_ever(syntax: Syntax) -> None:
    began = perf_counter()
    syntax.fault("a" * 4000)
    assert perf_counter() - began < 10


@pytest.mark.parametrize(
    "syntax",
    [
        Syntax("regex", "(unclosed"),
        Syntax("lark", "start: ("),
        Syntax("lark", "other: /a/"),
        Syntax("lark", "%import .secret (word)\nstart: word"),
        Syntax("lark", 'start: "a"~1..100000000'),
    ],
)
def test_a_grammar_that_cannot_be_read_holds_nothing_back(syntax: Syntax) -> None:
    assert syntax.fault("anything") is None


def test_what_a_grammar_comes_to_is_counted_and_what_is_usual_is_little() -> None:
    usual = (
        'start: begin hunk+ end?\nbegin: "*** Begin" LF\nend: "*** End" LF?\n'
        'hunk: ("+" | "-" | " ")? [NAME] ("x"~2..30) /(.*)/ LF\nNAME: LETTER (LETTER | DIGIT)~0..20\n'
        "%import common (LF, LETTER, DIGIT)\n"
    )
    recognizer = read(usual)
    assert recognizer is not None
    assert recognizer.accepts("*** Begin\n+xx..\n*** End\n")
    assert recognizer.accepts("*** Begin\n") is False


def test_a_declaration_without_a_grammar_has_none() -> None:
    assert Syntax.of({"type": "custom", "name": "x", "format": {"type": "text"}}) is None
    for odd in ([], {}, None, "peg"):
        odd_form = {"type": "grammar", "syntax": odd, "definition": "a"}
        assert Syntax.of({"type": "custom", "name": "x", "format": odd_form}) is None
    form = {"type": "grammar", "syntax": "regex", "definition": "a"}
    assert Syntax.of({"type": "custom", "name": "x", "format": form}) == Syntax("regex", "a")


def test_a_lark_grammar_without_lark_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "atem.responses.output.recognizer")
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(MissingExtra, match="lark"):
        Syntax("lark", 'start: "never seen before"').fault("a")
