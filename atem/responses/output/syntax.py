"""Whether the input of a custom tool is in the language of its grammar.

Rules: grammar and text are strangers', so every check is bounded: regular
expressions by time, parsing by steps, both by size; what is undecided then is
no. A grammar that can't be read holds nothing back: it has guided the model as a
description (responses.md 1.6). lark is loaded when a grammar needs it; without
it MissingExtra is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ...errors import MissingExtra
from ...tools.pattern import SECONDS, UNREADABLE, compiled

if TYPE_CHECKING:
    from .recognizer import Recognizer

MAX_TEXT: Final = 4 * 1024 * 1024
MAX_GRAMMAR: Final = 64 * 1024
"""Characters."""

MISSED: Final = "the input does not match the {} grammar of this tool"
UNDECIDED: Final = "the input could not be checked against the {} grammar of this tool: too costly"

Answer: TypeAlias = bool | None
"""Yes, no, or undecided within the bounds."""


class Syntax(NamedTuple):
    """What ``format`` of a custom tool asks for."""

    kind: Literal["lark", "regex"]
    definition: str

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> Syntax | None:
        """The grammar of a declaration; None if it has none."""
        nested = tool.get("custom")  # as Chat Completions has it
        form = (nested if isinstance(nested, Mapping) else tool).get("format")
        if not isinstance(form, Mapping) or form.get("type") != "grammar":
            return None
        inner = form.get("grammar")
        fields = inner if isinstance(inner, Mapping) else form
        kind, definition = fields.get("syntax"), fields.get("definition")
        if not isinstance(definition, str):
            return None
        return next((cls(known, definition) for known in CHECKS if known == kind), None)

    @property
    def too_large(self) -> bool:
        """Whether it is left unread, and guides the model only."""
        return len(self.definition) > MAX_GRAMMAR

    def fault(self, text: str) -> str | None:
        """What is wrong with ``text``, or None."""
        if self.too_large:
            return None
        answer = CHECKS[self.kind](self.definition, text) if len(text) <= MAX_TEXT else None
        if answer:
            return None
        return (UNDECIDED if answer is None else MISSED).format(self.kind)


def _regex(definition: str, text: str) -> Answer:
    try:
        seconds = SECONDS * (1 + len(text) / 2**20)
        return compiled(definition).fullmatch(text, timeout=seconds) is not None
    except UNREADABLE:
        return True
    except TimeoutError:
        return None


def _lark(definition: str, text: str) -> Answer:
    recognizer = _recognizer(definition)
    return True if recognizer is None else recognizer.accepts(text)


@lru_cache(maxsize=32)
def _recognizer(definition: str) -> Recognizer | None:
    try:
        from .recognizer import read  # lark takes a tenth of a second to load
    except ModuleNotFoundError as error:
        raise MissingExtra("server", "a tool with a lark grammar") from error
    return read(definition)


CHECKS: Final[dict[Literal["lark", "regex"], Callable[[str, str], Answer]]] = {
    "regex": _regex,
    "lark": _lark,
}
