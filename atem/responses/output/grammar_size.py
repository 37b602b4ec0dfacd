"""What a lark grammar comes to when lark writes it out, which has no bound of its own.

Rules: lark makes an alternative of every combination in a rule, and one
expression of all that a terminal refers to, so that twenty options in a row are
a million alternatives. They are counted in what lark's parser makes of the
text, before anything is written out. Templates, which may write themselves out
without end, and changes of what is imported are not read.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from lark import Tree
from lark.grammar import Terminal

MAX_SYMBOLS: Final = 100_000
"""In all alternatives together, the alternatives themselves counted too."""

MAX_RULES: Final = 1000
"""To find those that nothing leads to takes a time of their square."""

MAX_TERMINALS: Final = 100_000
"""Characters, about, of all terminals as expressions."""

IMPORTED: Final = 64
"""Of a terminal that is defined elsewhere."""

NOT_READ: Final = ("extend", "override")

SMALL: Final = 50
"""lark repeats a rule up to here by writing it out, and beyond by further rules."""

FURTHER: Final = 10
"""As often as one of these has what is repeated, at most."""


class Size(NamedTuple):
    """Alternatives, and the symbols in all of them together."""

    alternatives: int
    symbols: int

    def then(self, other: Size) -> Size:
        """One behind the other: every combination."""
        return Size(
            _capped(self.alternatives * other.alternatives),
            _capped(self.symbols * other.alternatives + other.symbols * self.alternatives),
        )

    def either(self, other: Size) -> Size:
        """One or the other."""
        return Size(
            _capped(self.alternatives + other.alternatives), _capped(self.symbols + other.symbols)
        )


NONE: Final = Size(0, 0)
EMPTY: Final = Size(1, 0)
ONE: Final = Size(1, 1)


def too_large(grammar: Any) -> bool:
    """Whether a grammar should not be loaded; ``grammar`` is the tree of its text."""
    named: dict[str, list[Any]] = {"rule": [], "term": []}
    for statement in grammar.children:
        if statement.data in NOT_READ:
            return True
        named.setdefault(statement.data, []).append(statement)
    rules = _Rules()
    for _, _, parameters, _, tree in (rule.children for rule in named["rule"]):
        if parameters.children:
            return True
        rules.add(rules.size(tree))
    terminals = _Terminals({str(term.children[0]): term.children[-1] for term in named["term"]})
    return (
        len(named["rule"]) > MAX_RULES
        or rules.total > MAX_SYMBOLS
        or terminals.total > MAX_TERMINALS
    )


class _Rules:
    """``total`` is what all rules come to, with those that lark makes for repeats."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, size: Size) -> None:
        self.total = _capped(self.total + size.alternatives + size.symbols)

    def size(self, tree: Any) -> Size:
        """What stands for ``tree`` in a rule."""
        if not isinstance(tree, Tree) or tree.data in ("value", "template_usage"):
            return ONE
        if tree.data == "expr":
            return self._repeated(*tree.children)
        inner = [self.size(child) for child in tree.children if isinstance(child, Tree)]
        if tree.data == "expansions":
            return _folded(Size.either, NONE, inner)
        found = _folded(Size.then, EMPTY, inner)
        return found.either(EMPTY) if tree.data == "maybe" else found

    def _repeated(self, tree: Any, how: Any, *counts: Any) -> Size:
        size = self.size(tree)
        if how == "?":
            return size.either(EMPTY)
        if how in ("*", "+"):
            self.add(size.either(size.then(ONE)))
            return ONE.either(EMPTY)
        least, most = int(counts[0]), int(counts[-1])
        if most >= SMALL:
            further = _power(size, FURTHER)
            for _ in range(FURTHER):
                self.add(Size(_capped(further.alternatives * FURTHER), further.symbols))
            return ONE
        each = [_power(size, times) for times in range(max(0, least), most + 1)]
        return _folded(Size.either, NONE, each)


def _power(size: Size, times: int) -> Size:
    return _folded(Size.then, EMPTY, [size] * times)


def _folded(combine: Any, first: Size, sizes: list[Size]) -> Size:
    for size in sizes:
        first = combine(first, size)
    return first


class _Terminals:
    """``total`` is the length of all as expressions, each with what it refers to inside."""

    def __init__(self, trees: dict[str, Any]) -> None:
        self._trees = trees
        self._lengths: dict[str, int] = {}
        self.total = sum(map(self._length, trees))

    def _length(self, name: str) -> int:
        if name not in self._lengths:
            self._lengths[name] = 0  # one that leads back to itself is refused by lark
            self._lengths[name] = self._characters(self._trees.get(name))
        return self._lengths[name]

    def _characters(self, tree: Any) -> int:
        if tree is None:
            return IMPORTED
        if isinstance(tree, Terminal):
            return self._length(tree.name)
        if not isinstance(tree, Tree):
            return len(str(tree))
        inner = sum(map(self._characters, tree.children))
        return _capped(inner + len("(?:)"), MAX_TERMINALS)


def _capped(number: int, most: int = MAX_SYMBOLS) -> int:
    return min(number, most + 1)
