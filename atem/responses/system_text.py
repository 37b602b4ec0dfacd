"""System and developer texts: one block at the beginning, later ones in the user's turn.

Rules: instructions and the leading system and developer messages are one system
block, in order. The format repeats all tools in every further system message,
so that a later one is put, labelled, into the next user message
(responses.md 1.4); one that no user message follows is a message of its own.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from ..messages import Content, Message, Part, TextPart
from ..render.prompt import as_parts
from .inputs import LEADING_ROLES
from .parts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABELS: Final = {"system": "[System message]\n", "developer": "[Developer message]\n"}
BETWEEN: Final = "\n\n"


def arranged(
    messages: Sequence[Message], *, before: str = "", after: str = ""
) -> tuple[Message, ...]:
    """``messages`` with one system message at most, and that at the beginning.

    ``before`` (instructions) and ``after`` (the format of the answer) belong to it.
    """
    leading = list(takewhile(lambda message: message.role in LEADING_ROLES, messages))
    texts = [before, *(message.content for message in leading), after]
    rest = tuple(_folded(messages[len(leading) :]))
    content = joined(texts)
    return (Message("system", content), *rest) if content else rest


def joined(contents: Iterable[Content]) -> Content:
    """``contents`` with a blank line between them; those without text or image left out."""
    parts: list[Part] = []
    for content in contents:
        shown = [part for part in as_parts(content) if part != TextPart("")]
        parts += [TextPart(BETWEEN), *shown] if parts and shown else shown
    if all(isinstance(part, TextPart) for part in parts):
        return text_of(tuple(parts))
    return tuple(parts)


def _folded(messages: Iterable[Message]) -> Iterator[Message]:
    waiting: list[Content] = []
    for message in messages:
        if message.role in LEADING_ROLES:
            if message.content:
                waiting.append((TextPart(LABELS[message.role]), *as_parts(message.content)))
        elif waiting and message.role == "user":
            yield Message("user", joined([*waiting, message.content]))
            waiting = []
        else:
            yield from _own(waiting)
            waiting = []
            yield message
    yield from _own(waiting)


def _own(waiting: list[Content]) -> Iterator[Message]:
    if waiting:
        yield Message("user", joined(waiting))
