"""Sums and products, exact and bounded; Python's own arithmetic is the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.agent import calculate
from atem.agent.calculate import MAX_DEPTH, MAX_EXPRESSION

NUMBERS = st.integers(0, 10**12).map(str)
SUMS = st.recursive(
    NUMBERS,
    lambda inner: (
        st.tuples(inner, st.sampled_from([" + ", "-", "*", " *-"]), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
    ),
    max_leaves=12,
)


@given(SUMS)
def test_it_is_what_python_makes_of_it(expression):
    assert calculate(expression=expression) == str(eval(expression))


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ("", "at its end"), ("1 +", "at its end"), ("(1", "at its end"), ("2 3", "at '3'"),
        ("7 / 2", "at '/'"), ("2 ** 3", "at '*'"), ("1,000", "at ','"), ("1.5", "at '.'"),
        ("x", "at 'x'"), ("1)", "at ')'"), ("()", "at ')'"), ("٣", "at '٣'"), ("__import__('os')", "at '_'"),
    ],
)  # fmt: skip
def test_what_it_can_not_read_it_says_where(expression, where):
    with pytest.raises(ValueError, match="can't be read") as caught:
        calculate(expression=expression)
    assert f"can't be read {where}; write whole numbers" in str(caught.value)


def test_its_work_is_bounded():
    with pytest.raises(ValueError, match="more than 1000 characters"):
        calculate(expression="1" * (MAX_EXPRESSION + 1))
    for opening in "(", "-":
        with pytest.raises(ValueError, match="nested more than 50 deep"):
            calculate(expression=opening * (MAX_DEPTH + 1) + "1")
    assert len(calculate(expression="9" * MAX_EXPRESSION)) == MAX_EXPRESSION


@given(st.text("0123456789+-*() ", max_size=60))
def test_it_agrees_with_python_or_refuses(expression):
    try:
        found = calculate(expression=expression)
    except ValueError:
        return
    # Python alone forbids leading zeros.
    assert found == str(eval("".join(_without_zeros(expression.strip()))))


def _without_zeros(expression):
    import re

    return re.sub(r"[0-9]+", lambda number: str(int(number[0])), expression)
