"""A tool that works out sums and products of whole numbers.

Rules: exact and bounded; nothing is evaluated as code.
"""

from __future__ import annotations

import re
from typing import Final

from ..tools import tool

MAX_EXPRESSION: Final = 1000
"""Characters; the digits of a result are no more than these."""

MAX_DEPTH: Final = 50
"""Parentheses, and signs, inside one another."""

_SYMBOL: Final = re.compile(r"\s*([0-9]+|[-+*()])")


@tool
def calculate(expression: str) -> str:
    """Work out a sum or a product."""
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression has more than {MAX_EXPRESSION} characters")
    reader = _Reader(expression)
    value = reader.sum(0)
    if reader.symbol:
        raise reader.unreadable()
    return str(value)


class _Reader:
    """Reads an expression by recursive descent: a sum of products of numbers and parentheses."""

    def __init__(self, expression: str) -> None:
        self.text = expression.rstrip()
        self.at = self.next = 0
        self.symbol = ""
        self.advance()

    def advance(self) -> None:
        """Go to the next symbol; "" is the end."""
        self.at = self.next
        found = _SYMBOL.match(self.text, self.at)
        if found is None and self.at < len(self.text):
            self.symbol = self.text[self.at :].lstrip()[0]
            raise self.unreadable()
        self.symbol, self.next = (found[1], found.end()) if found else ("", self.at)

    def taken(self, symbol: str) -> bool:
        """Whether this is ``symbol``, which is then behind us."""
        found = self.symbol == symbol
        if found:
            self.advance()
        return found

    def unreadable(self) -> ValueError:
        """What to raise where reading ends."""
        where = f"at {self.symbol!r}" if self.symbol else "at its end"
        return ValueError(
            f"the expression can't be read {where}; write whole numbers, + - * and parentheses"
        )

    def sum(self, depth: int) -> int:
        value = self.product(depth)
        while self.symbol in ("+", "-"):
            sign = -1 if self.symbol == "-" else 1
            self.advance()
            value += sign * self.product(depth)
        return value

    def product(self, depth: int) -> int:
        value = self.factor(depth)
        while self.taken("*"):
            value *= self.factor(depth)
        return value

    def factor(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ValueError(f"the expression is nested more than {MAX_DEPTH} deep")
        if self.taken("-"):
            return -self.factor(depth + 1)
        if self.taken("("):
            value = self.sum(depth + 1)
            if not self.taken(")"):
                raise self.unreadable()
            return value
        if not self.symbol.isdigit():
            raise self.unreadable()
        value = int(self.symbol)
        self.advance()
        return value
