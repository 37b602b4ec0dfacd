"""A prompt in the form that a server takes: ids, or text that can't forge a control token.

Rules: a server reads control tokens out of raw text wherever they are spelled,
so text in which something spells one that is none is never sent. With ids that
danger does not exist.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ... import wire
from ...errors import ContextOverflow, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...engine import Request
    from ...tokenizer import Tokenizer

SPECIAL: Final = re.compile(r"<\|[A-Za-z0-9_]+\|>")
"""What a special token looks like, the control literals and the tokenizer's other ones."""


def raw_text(prompt: Any) -> str:
    """A rendered prompt as text.

    Raises Unsupported if text in it spells a special token, also across
    segments, or if the prompt doesn't tell text from control tokens.
    """
    parts = list(_segments(prompt))
    text = "".join(part for part, _ in parts)
    control = set(_spans(parts))
    for match in SPECIAL.finditer(text):
        if match.span() not in control:
            raise Unsupported(
                f"text in the prompt spells {match.group()!r}, which the server would read as a "
                "control token; pass tokenizer= so that ids are sent, to a server that takes them"
            )
    return text


def _segments(prompt: Any) -> Iterator[tuple[str, bool]]:
    try:
        for segment in prompt:
            yield segment.text, bool(segment.control)
    except (AttributeError, TypeError):
        raise Unsupported(
            "this server is sent raw text, and prompt= is not a rendered prompt (atem.render), "
            "whose segments tell text from control tokens; pass one, or tokenizer= to a server "
            "that takes ids"
        ) from None


def _spans(parts: list[tuple[str, bool]]) -> Iterator[tuple[int, int]]:
    start = 0
    for part, control in parts:
        if control:
            yield start, start + len(part)
        start += len(part)


def without_begin(text: str) -> str:
    """``text`` for a server that begins every prompt with ``<|begin_of_text|>`` itself."""
    return text.removeprefix(wire.BEGIN_OF_TEXT)


def prompt_ids(request: Request, tokenizer: Tokenizer | None) -> list[int] | None:
    """The prompt's ids, or None if there is no tokenizer to make them with."""
    if tokenizer is not None:
        return request.prompt_ids(tokenizer)
    rendered = hasattr(request.prompt, "token_ids")
    return None if rendered else [int(number) for number in request.prompt]  # type: ignore[union-attr]


def room(used: int, context: int, wanted: int | None) -> int:
    """How many tokens the answer may have. Raises ContextOverflow if there is no room for one."""
    left = context - used
    if left < 1:
        raise ContextOverflow(
            f"the prompt has {used} tokens and the context {context}, which leaves no room for an "
            "answer; shorten the prompt, or give the server a larger context"
        )
    return left if wanted is None else min(left, wanted)
