"""How long a prompt is, and what goes when it is too long.

Rules: tokens are counted by rendering and encoding, and never estimated; but a
text that can't fit by any means is not encoded, which takes two hundred times
its memory. Only
``truncation: "auto"`` leaves anything out: the oldest first, a call never
without its result, the system block and the newest turn never.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from .. import wire
from .faults import too_long

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine import EngineInfo
    from ..messages import Message
    from ..tokenizer import Tokenizer
    from .ask import Ask

CHARACTERS: Final = 32
"""Of a token, on average over a prompt, at the very most; of English they are four."""

SHARE: Final = 4
"""At most one part in this many of the context is kept free for an answer."""


def input_tokens(ask: Ask, tokenizer: Tokenizer, info: EngineInfo | None = None) -> int:
    """The tokens of the prompt, the beginning of the answer and what an image takes included.

    Raises ApiError for what can't be shown to the engine of ``info``, and for
    what is so long that it is not counted.
    """
    if info is None:
        return ask.prompt(info, channel=ask.channel(info)).count(tokenizer)
    tokens = _count(ask, tokenizer, info.context, info)
    if tokens is None:
        raise too_long(None, info.context)
    return tokens


def _count(ask: Ask, tokenizer: Tokenizer, context: int, info: EngineInfo | None) -> int | None:
    """As :func:`input_tokens`; None for far more than a context."""
    prompt = ask.prompt(info, channel=ask.channel(info))
    return None if prompt.length > CHARACTERS * context else prompt.count(tokenizer)


def truncate(ask: Ask, tokenizer: Tokenizer, context: int, info: EngineInfo | None = None) -> Ask:
    """``ask`` so that it fits a context of that many tokens; it counts the messages left out.

    Raises ApiError (``context_length_exceeded``) if it doesn't fit, or can't be made to.
    """
    tokens = _count(ask, tokenizer, context, info)
    if ask.truncation == "disabled":
        if tokens is None or tokens >= context:
            raise too_long(tokens, context)
        return ask
    limit = context - min(ask.max_tokens or context // SHARE, context // SHARE, context - 1)
    if tokens is not None and tokens <= limit:
        return ask
    ask = replace(ask, tools=ask.tools.all_shown())
    system, groups = _groups(ask.messages)
    low, high = 1, len(groups) - 1  # how many of the oldest groups go
    shorter = None
    while low <= high:
        middle = (low + high) // 2
        kept = [message for group in groups[middle:] for message in group]
        candidate = replace(ask, messages=(*system, *kept))
        count = _count(candidate, tokenizer, context, info)
        if count is not None and count <= limit:
            shorter, high = candidate, middle - 1
        else:
            low = middle + 1
    if shorter is None:
        raise too_long(tokens, context)
    return replace(shorter, left_out=len(ask.messages) - len(shorter.messages))


def _groups(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system block, and what goes together: a user's message, a turn and its results."""
    system = [message for message in messages[:1] if message.role == "system"]
    groups: list[list[Message]] = []
    for role, run in groupby(messages[len(system) :], key=lambda message: message.role):
        if role == "tool" and groups:
            groups[-1] += run
        elif role == wire.ASSISTANT:
            groups.append(list(run))
        else:
            groups += [[message] for message in run]
    return system, groups
