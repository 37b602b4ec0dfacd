"""Whether a text is in the language of a lark grammar, within a number of steps.

Rules: lark reads the grammar, and nothing else of it is used: its own parsers
have no bound on their time, and a terminal that backtracks would hold the
process. Earley's algorithm over the terminals as they match at each place, the
longest match of each, like lark's dynamic lexer. The steps are counted; only
the expressions of terminals have a clock, because nothing else stops them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import regex
from lark import load_grammar as lark
from lark.exceptions import LarkError

from ...tools.pattern import SECONDS, UNREADABLE, compiled, written_out
from .grammar_size import too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE: Final = 200_000
PER_CHARACTER: Final = 4
MAX_STEPS: Final = 2_000_000
"""Some seconds at the very most, and only for a grammar that is made for it."""

TERMINAL_SECONDS: Final = 2.0
"""For all matches of terminals together; one may take ``SECONDS``."""

NAME: Final = "a grammar"
MAX_REPEAT: Final = 1000
MAX_TERMINALS: Final = 40_000
"""Elements of all terminals together, their repeats written out."""

_IMPORT: Final = regex.compile(r"^\s*%import\s+(?!common\b|unicode\b)", regex.MULTILINE)
_REPEAT: Final = regex.compile(r"~\s*(?:\d+\s*\.\.\s*)?(\d+)|\{\d*,?(\d+)\}")

Rule: TypeAlias = tuple[str, ...]


class State(NamedTuple):
    """A rule that has been matched up to ``dot``, from ``origin`` of the text on."""

    name: str
    rule: Rule
    dot: int
    origin: int

    @property
    def wanted(self) -> str | None:
        """What has to come next; None if it is over."""
        return self.rule[self.dot] if self.dot < len(self.rule) else None

    def after(self) -> State:
        """One symbol further on."""
        return State(self.name, self.rule, self.dot + 1, self.origin)


class TooMany(Exception):
    """The steps are used up. Internal."""


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A grammar: its rules by name, its terminals as compiled expressions."""

    rules: dict[str, list[Rule]]
    terminals: dict[str, Any]
    ignored: tuple[str, ...] = ()

    def accepts(self, text: str) -> bool | None:
        """Whether ``text`` is of the language; None if that takes too long."""
        try:
            return _Run(self, text).accepts()
        except (TooMany, TimeoutError):
            return None


@dataclass(slots=True)
class _Run:
    grammar: Recognizer
    text: str
    left: int = 0
    seconds: float = TERMINAL_SECONDS
    states: dict[int, dict[State, None]] = field(default_factory=dict)
    waiting: dict[int, defaultdict[str, list[State]]] = field(default_factory=dict)
    empty: dict[int, set[str]] = field(default_factory=dict)
    """Names that have matched nothing at a place."""

    def accepts(self) -> bool:
        self.left = min(MAX_STEPS, BASE + PER_CHARACTER * len(self.text))
        for rule in self.grammar.rules["start"]:
            self._add(State("start", rule, 0, 0), 0)
        for place in range(len(self.text) + 1):
            if place in self.states:
                self._advance(place)
                if place < len(self.text):
                    self._forget(place)
        final = self.states.get(len(self.text), {})
        return any(s.wanted is None and s.name == "start" and s.origin == 0 for s in final)

    def _forget(self, place: int) -> None:
        """Only who waited at a place is asked for later; what has run is not."""
        del self.states[place]

    def _add(self, state: State, place: int) -> None:
        self.states.setdefault(place, {}).setdefault(state)

    def _advance(self, place: int) -> None:
        states = self.states[place]
        self.waiting[place] = defaultdict(list)
        self.empty[place] = set()
        done = 0
        while done < len(states):
            for state in list(states)[done:]:
                done += 1
                self._step(state, place)

    def _step(self, state: State, place: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooMany
        wanted = state.wanted
        if wanted is None:
            self._complete(state, place)
        elif wanted in self.grammar.terminals:
            for end in self._matches(wanted, place):
                self._add(state.after(), end)
        else:
            self._predict(state, wanted, place)

    def _predict(self, state: State, wanted: str, place: int) -> None:
        self.waiting[place][wanted].append(state)
        for rule in self.grammar.rules.get(wanted, ()):
            self._add(State(wanted, rule, 0, place), place)
        if wanted in self.empty[place]:
            self._add(state.after(), place)

    def _complete(self, state: State, place: int) -> None:
        if state.origin == place:
            self.empty[place].add(state.name)
        waiting = self.waiting[state.origin][state.name]
        self.left -= len(waiting)
        for waited in waiting:
            self._add(waited.after(), place)

    def _matches(self, terminal: str, place: int) -> Iterator[int]:
        """Where ``terminal`` may end that begins here, ignored text before it or behind it."""
        for start in self._skipped(place):
            end = self._match(terminal, start)
            if end is not None:
                yield from self._skipped(end)

    def _skipped(self, place: int) -> dict[int, None]:
        """``place``, and the places that ignored text leads to."""
        found = {place: None}
        pending = [place]
        while pending:
            start = pending.pop()
            for name in self.grammar.ignored:
                end = self._match(name, start)
                if end is not None and end not in found:
                    found[end] = None
                    pending.append(end)
        return found

    def _match(self, terminal: str, place: int) -> int | None:
        self.left -= 1
        if self.left < 0 or self.seconds < 0:
            raise TooMany
        began = perf_counter()
        found = self.grammar.terminals[terminal].match(self.text, place, timeout=SECONDS)
        self.seconds -= perf_counter() - began
        return None if found is None else int(found.end())


def read(definition: str) -> Recognizer | None:
    """The recognizer of a grammar whose start is ``start``; None if lark can't read it here.

    A grammar that imports from files is not read, and none with huge repeats.
    """
    if _IMPORT.search(definition) or any(map(_huge, _REPEAT.finditer(definition))):
        return None
    try:
        loader: Any = lark  # it has no types
        if too_large(loader._parse_grammar(definition, NAME)):  # noqa: SLF001 - before it is loaded
            return None
        grammar, _ = loader.load_grammar(definition, NAME, [], global_keep_all_tokens=False)
        found, given, ignored = grammar.compile(["start"], "*")
        terminals = _compiled({str(each.name): each.pattern.to_regexp() for each in found})
    except (LarkError, RecursionError, AssertionError, ValueError, KeyError, *UNREADABLE):
        return None
    rules: dict[str, list[Rule]] = {}
    for rule in given:
        symbols = tuple(str(symbol.name) for symbol in rule.expansion)
        rules.setdefault(str(rule.origin.name), []).append(symbols)
    names = tuple(map(str, ignored))
    return Recognizer(rules, terminals, names) if "start" in rules else None


def _compiled(patterns: dict[str, str]) -> dict[str, Any]:
    if sum(map(written_out, patterns.values())) > MAX_TERMINALS:
        raise OverflowError("the terminals are too large with their repeats written out")
    return {name: compiled(pattern) for name, pattern in patterns.items()}


def _huge(found: regex.Match[str]) -> bool:
    number = found.group(1) or found.group(2)
    return len(number) > len(str(MAX_REPEAT)) or int(number) > MAX_REPEAT
