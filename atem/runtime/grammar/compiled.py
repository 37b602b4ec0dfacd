"""llguidance, as far as it is used: whether it takes a grammar, and grammars compiled by it.

Rules: loaded when it is first needed. What it refuses is raised as Unsupported
with its reason in one line. A grammar is a stranger's, so its limits on size,
steps and memory stay on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ... import wire
from ...errors import MissingExtra, Unsupported
from ...grammar import TEXT
from .excess import excess
from .lark import Writer, spellings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...grammar import Form, Grammar
    from .vocabulary import Vocabulary

MAX_REASON: Final = 200
REFUSED: Final = "grammar= can't be applied: {}"
_PLACE: Final = re.compile(r"^(at \d+\(\d+\): )?(failed to compile JSON schema: )?")

MAX_COPIES: Final = 64
"""Messages that share the states of one matcher; what they add to is limited."""

_LIMITS: Final = {"max_lexer_states": 100_000, "verbose_errors": False}
"""About 200 MB at the very most; errors without the grammar in them."""


@lru_cache(maxsize=256)
def fault(form: Form) -> str | None:
    """Why ``form`` can't be applied, or None. Raises MissingExtra without llguidance."""
    return excess(form) or _unread(_writer().alone(form))


@lru_cache(maxsize=8)
def fault_of_all(grammar: Grammar) -> str | None:
    """Why ``grammar`` can't be applied, or None; parts that can be may be too much together."""
    return _unread(_writer().turn(grammar, thinking=True))


class Compiled:
    """A grammar for the ids of one vocabulary.

    ``names`` are its calls as a header may write them, ``free`` the recipients
    whose messages are the model's own. Raises Unsupported if it can't be applied,
    MissingExtra without llguidance.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        declared = frozenset(call.name for call in grammar.calls)
        own = [call.name for call in grammar.calls if call.parameters is None]
        self.names = frozenset(name for call in declared for name in spellings(call, declared))
        self.free = frozenset(name for call in own for name in spellings(call, declared))
        self.free |= {wire.SELF} | ({wire.USER} if grammar.answer == TEXT else set())
        self._grammar, self.vocabulary = grammar, vocabulary
        self._matchers: dict[bool, Any] = {}
        self._copies = 0
        if reason := next(filter(None, map(excess, _forms(grammar))), None):
            raise Unsupported(REFUSED.format(reason))
        self.opening(thinking=True)

    def opening(self, *, thinking: bool) -> Any:
        """A matcher before the ``<|start|>`` of a message; to ``self`` only with ``thinking``."""
        self._copies += 1
        if self._copies > MAX_COPIES:
            self.renew()
        matcher = self._matchers.get(thinking) or self._matcher(thinking=thinking)
        self._matchers[thinking] = matcher
        return matcher.deep_copy()

    def renew(self) -> None:
        """Have no more in common with the copies that are out, which add to the states of all."""
        self._matchers.clear()
        self._copies = 0

    def header(self, name: str) -> list[int]:
        """The ids that open a message to ``name``."""
        ids = self.vocabulary.tokenizer.encode(f"{wire.ASSISTANT} {wire.TO}{name}")
        return [self._id(wire.START), *ids, self._id(wire.MESSAGE)]

    def _matcher(self, *, thinking: bool) -> Any:
        text = Writer(self._token, _escape).turn(self._grammar, thinking=thinking)
        matcher = _started(self.vocabulary.view, text)
        if reason := _reason(matcher.get_error()):
            raise Unsupported(REFUSED.format(reason))
        return matcher

    def _token(self, literal: str) -> str:
        return f"<[{self._id(literal)}]>"

    def _id(self, literal: str) -> int:
        number = self.vocabulary.tokenizer.special_id(literal)
        assert number is not None
        return number


def _forms(grammar: Grammar) -> Iterator[Form]:
    """All that it is made of."""
    yield from () if grammar.answer is None else (grammar.answer,)
    for call in grammar.calls:
        yield from (parameter.form for parameter in call.parameters or ())


def library() -> Any:
    """llguidance. Raises MissingExtra."""
    try:
        import llguidance
    except ModuleNotFoundError as error:
        raise MissingExtra("grammar", "a grammar") from error
    return llguidance


def _writer() -> Writer:
    """A writer for a vocabulary of bytes, in which framing stands for nothing."""
    return Writer(lambda literal: "<[0]>", _escape)


def _unread(text: str) -> str | None:
    return _reason(_started(library().LLTokenizer("byte"), text).get_error())


def _started(view: Any, text: str) -> Any:
    """A matcher for the grammar ``text``, which may be in error; it has done its first step."""
    found = library()
    limits = found.LLParserLimits(**_LIMITS)
    matcher = found.LLMatcher(view, text, log_level=0, limits=limits)
    matcher.compute_bitmask()
    return matcher


def _escape(pattern: str) -> str:
    escaped: str = library().regex_to_lark(pattern, "dw")
    return escaped


def _reason(text: str) -> str | None:
    """An error in one line: what is wrong, without the grammar that it quotes."""
    lines = [line.strip() for line in text.partition("<backtrace>")[0].splitlines()]
    named = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return _PLACE.sub("", (named or lines)[0])[:MAX_REASON] if text else None
