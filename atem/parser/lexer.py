"""Patterns that find the next marker of a text, or the beginning of one at its end.

Rules: one compiled pattern for each kind of body, each marker with "end of
the text" as an alternative after every character. A match is therefore a
whole marker, or a proper prefix of one that the next chunk may complete; one
search serves both. Nothing here knows a state or keeps a position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .. import wire

TAGS: Final = (
    wire.BLOCK_OPEN,
    wire.BLOCK_CLOSE,
    wire.INVOKE_OPEN,
    wire.INVOKE_CLOSE,
    wire.PARAMETER_OPEN,
    wire.PARAMETER_CLOSE,
)
OPENERS: Final = frozenset((wire.INVOKE_OPEN, wire.PARAMETER_OPEN))
"""Names that are tags only if whitespace, ``>`` or ``/`` follows (wire_format 3)."""


def _alternatives(literals: Iterable[str]) -> str:
    """A pattern for each literal or, at the end of the text, any prefix of one."""
    branches: dict[str, list[str]] = {}
    for literal in literals:
        branches.setdefault(literal[0], []).append(literal[1:])
    parts = []
    for first, rests in branches.items():
        longer = [rest for rest in rests if rest]
        parts.append(re.escape(first) + (f"(?:{_alternatives(longer)}|\\Z)" if longer else ""))
    return "|".join(parts)


class Lexer:
    """Finds the next of some markers, or the beginning of one at the end of a text.

    ``search`` and ``match`` are those of the compiled pattern.
    """

    __slots__ = ("_literals", "match", "search")

    def __init__(self, *literals: str) -> None:
        guarded = [f"{text}\0" if text in OPENERS else text for text in literals]
        source = _alternatives(guarded) or "(?!)"
        # The stand-in \0 after an opener becomes a look-ahead for what makes it a tag.
        pattern = re.compile(source.replace(re.escape("\0"), "(?=[ \\t\\r\\n>/])"))
        self.search = pattern.search
        self.match = pattern.match
        self._literals = frozenset(literals)

    def is_whole(self, found: re.Match[str], text: str) -> bool:
        """Whether ``found`` is a whole marker rather than a prefix at the end of ``text``."""
        literal = found.group()
        return literal in self._literals and not (literal in OPENERS and found.end() == len(text))


ANSWER: Final = Lexer(*wire.TERMINATORS)
ANSWER_WITH_BLOCKS: Final = Lexer(*wire.TERMINATORS, wire.BLOCK_OPEN, wire.INVOKE_OPEN)
REASONING: Final = Lexer(*wire.TERMINATORS, wire.START, wire.TO)
FRAMING: Final = Lexer(*wire.FRAMING)
PROBE: Final = Lexer(*wire.FRAMING, wire.TAG_PREFIX)
TOOL: Final = Lexer(*wire.FRAMING, *TAGS)

# Text of known provenance spells no framing (wire_format 1.1). ``<|message|>`` stays
# a marker in tool bodies, where it is noise inside a quoted name (5.7).
NOTHING: Final = Lexer()
PLAIN_ANSWER_WITH_BLOCKS: Final = Lexer(wire.BLOCK_OPEN, wire.INVOKE_OPEN)
PLAIN_REASONING: Final = Lexer(wire.TO)
PLAIN_PROBE: Final = Lexer(wire.TAG_PREFIX)
PLAIN_TOOL: Final = Lexer(wire.MESSAGE, *TAGS)
