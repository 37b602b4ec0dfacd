"""Patterns that find the next marker of a text, or the beginning of one at its end.

Rules: one compiled pattern for each kind of body, each marker with "end of
the text" as an alternative after every character. A match is therefore a
whole marker, or a proper prefix of one that the next chunk may complete; one
search serves both. Nothing here knows a state or keeps a position.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .. import wire

if TYPE_CHECKING:
    from collections.abc import Iterable

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


_GUARD: Final = "\0"
"""Stands behind an opener for the look-ahead that makes it a tag."""


def _alternatives(literals: Iterable[str]) -> str:
    """A pattern for each literal or, at the end of the text, any prefix of one.

    An empty group stands behind each whole literal, so that a match tells which it is.
    """
    branches: dict[str, list[str]] = {}
    for literal in literals:
        branches.setdefault(literal[0], []).append(literal[1:])
    parts = []
    for first, rests in branches.items():
        longer = [rest for rest in rests if rest]
        if first == _GUARD:
            parts.append("(?=[ \\t\\r\\n>/])()")
        else:
            parts.append(
                re.escape(first) + (f"(?:{_alternatives(longer)}|\\Z)" if longer else "()")
            )
    return "|".join(parts)


class Lexer:
    """Finds the next of some markers, or the beginning of one at the end of a text.

    ``search`` and ``match`` are those of the compiled pattern. A match whose
    ``lastindex`` is None is the beginning of a marker, any other a whole one.
    """

    __slots__ = ("match", "search")

    def __init__(self, *literals: str) -> None:
        guarded = [text + _GUARD if text in OPENERS else text for text in literals]
        pattern = re.compile(_alternatives(guarded) or "(?!)")
        self.search = pattern.search
        self.match = pattern.match


ANSWER: Final = Lexer(*wire.TERMINATORS)
ANSWER_WITH_BLOCKS: Final = Lexer(*wire.TERMINATORS, wire.BLOCK_OPEN)
REASONING: Final = Lexer(*wire.TERMINATORS, wire.START, wire.TO)
FRAMING: Final = Lexer(*wire.FRAMING)
PROBE: Final = Lexer(*wire.FRAMING, wire.TAG_PREFIX)
TOOL: Final = Lexer(*wire.FRAMING, *TAGS)

# Text of known provenance spells no framing (wire_format 1.1). ``<|message|>`` stays
# a marker in tool bodies, where it is noise inside a quoted name (5.7).
NOTHING: Final = Lexer()
PLAIN_ANSWER_WITH_BLOCKS: Final = Lexer(wire.BLOCK_OPEN)
PLAIN_REASONING: Final = Lexer(wire.TO)
PLAIN_PROBE: Final = Lexer(wire.TAG_PREFIX)
PLAIN_TOOL: Final = Lexer(wire.MESSAGE, *TAGS)
