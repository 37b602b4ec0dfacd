"""Every complaint about other servers has its tests, and they are there.

Rules: tests/cases/complaints.toml is the list. One test at least says which
complaint it is about, by its number in its name or by the report in its docstring.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPLAINTS = tomllib.loads((ROOT / "tests/cases/complaints.toml").read_text())


@cache
def defined_in(path):
    """The tests of a file: name -> docstring."""
    tree = ast.parse((ROOT / path).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in found}


def says(name, docstring, number, reports):
    numbered = re.search(rf"(?i)\b{number}\b", f"{name.replace('_', ' ')} {docstring}")
    return bool(numbered) or any(report in docstring for report in reports)


def test_the_list_is_whole():
    assert list(COMPLAINTS) == [f"C{number}" for number in range(1, 57)]


@pytest.mark.parametrize("number", COMPLAINTS)
def test_a_complaint_has_a_test_that_says_so(number):
    complaint = COMPLAINTS[number]
    assert complaint["rule"]
    named = [test.split("::") for test in complaint["tests"]]
    assert [test for path, test in named if test not in defined_in(path)] == []
    assert any(says(t, defined_in(path)[t], number, complaint["reports"]) for path, t in named)
