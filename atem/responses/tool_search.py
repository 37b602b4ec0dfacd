"""Finding deferred tools: by words, in the ``tool_search`` tool, and told to the model.

Rules: what was found is declared in the answer to the search, as the system
text would declare it, so that no text before it changes. The search here is
Okapi BM25 over names and descriptions, nothing learned and nothing random: the
same tools and words find the same tools in the same order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..render.system import by_head, declarations, recipient_words
from ..tools import ToolSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..tools import Tool

NAME: Final = "tool_search"
DESCRIPTION: Final = "Find more tools by what they do. Tools that are found can be called next."
PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Words that describe the tool"},
        "limit": {"type": "integer", "description": "How many to find at most"},
    },
    "required": ["query"],
    "additionalProperties": False,
}

SATURATION: Final = 1.2
"""BM25's k1: how soon a repeated word stops counting."""

LENGTH: Final = 0.75
"""BM25's b: how much a long description counts against its tool."""

NAME_WEIGHT: Final = 3
"""A word of the name counts as often as this."""

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


NOTHING: Final = "No tools were found."
FOUND: Final = "These tools can be called now: {}"
RECIPIENTS: Final = "# More valid recipients: {}."


def told(names: Iterable[str], found: Iterable[Tool]) -> str:
    """What a search is answered: all names, and the declarations of those that are new."""
    listed = ", ".join(dict.fromkeys(names))
    tools = ToolSet({tool.wire_name: tool for tool in found}.values())
    if not listed:
        return NOTHING
    text = FOUND.format(listed)
    if not len(tools):
        return text
    words = ", ".join(f'"{word}"' for word in recipient_words(tools, "template")[1:-1])
    return f"{text}\n{declarations(tools, by_head(tools))}\n\n{RECIPIENTS.format(words)}"


class Searchable(NamedTuple):
    """What a tool is found by."""

    name: str
    description: str


def search(tools: Iterable[Searchable], query: str, limit: int) -> list[int]:
    """The places of the best ``limit`` tools that share a word with ``query``, best first."""
    documents = [Counter(_words(tool)) for tool in tools]
    wanted = set(_split(query))
    found = Counter({place: _score(documents, place, wanted) for place in range(len(documents))})
    return [place for place, score in found.most_common(max(0, limit)) if score > 0]


def _words(tool: Searchable) -> list[str]:
    return _split(tool.name) * NAME_WEIGHT + _split(tool.description)


def _split(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", text))]


def _score(documents: list[Counter[str]], place: int, wanted: set[str]) -> float:
    words = documents[place]
    mean = sum(document.total() for document in documents) / len(documents)
    room = SATURATION * (1 - LENGTH + LENGTH * words.total() / mean) if mean else SATURATION
    return sum(
        _rarity(documents, word) * words[word] * (SATURATION + 1) / (words[word] + room)
        for word in wanted
        if word in words
    )


def _rarity(documents: list[Counter[str]], word: str) -> float:
    having = sum(word in document for document in documents)
    return math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
