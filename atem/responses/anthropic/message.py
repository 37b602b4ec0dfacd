"""A response object as a message.

Rules: a block for each item, in the model's order. Empty texts are no blocks. A
call that is not completed is left out. A response that failed has no message.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..outcome import failure, runnable, text_of, thought_of
from .forms import ending, envelope, said, thinking, tool_use

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .request import Display


def message(
    response: Mapping[str, Any],
    *,
    model: str | None = None,
    display: Display = "shown",
    stop_sequence: str | None = None,
) -> dict[str, Any]:
    """The message that a finished response is.

    ``model`` is another name to answer with, ``display`` what the client sees
    of the reasoning, ``stop_sequence`` the string that ended it. Raises
    ApiError for a response that failed or was cancelled.
    """
    error = failure(response)
    if error is not None:
        raise error
    blocks = [block for item in response["output"] for block in _blocks(item, display)]
    return envelope(response, model) | {"content": blocks, **ending(response, stop_sequence)}


def _blocks(item: Mapping[str, Any], display: Display) -> Iterator[dict[str, Any]]:
    if item["type"] == "message":
        yield said(text_of(item))
    elif item["type"] == "reasoning":
        if display != "hidden":
            yield thinking(thought_of(item), item.get("encrypted_content"), display)
    elif runnable(item):
        block, given = tool_use(item)
        yield block | {"input": json.loads(given)}
