"""A response object as a chat.completion.

Rules: one choice, with the items of one kind put together: this API has no
order between reasoning, text and calls. A call that is not completed is left
out. A response that failed has no completion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..outcome import CALLS, failure, items_of, runnable, text_of, thought_of
from .forms import (
    BETWEEN_TEXTS,
    BETWEEN_THOUGHTS,
    REASONING,
    finish_reason,
    head,
    token_logprobs,
    tool_call,
    usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def completion(
    response: Mapping[str, Any], *, model: str | None = None, reasoning: Sequence[str] = REASONING
) -> dict[str, Any]:
    """The completion that a finished response is.

    ``model`` is another name to answer with; ``reasoning`` are the keys that
    the reasoning stands under. Raises ApiError for a response that failed or
    was cancelled.
    """
    error = failure(response)
    if error is not None:
        raise error
    choice = {
        "index": 0,
        "message": _message(response, reasoning),
        "logprobs": token_logprobs(_logprobs(response)),
        "finish_reason": finish_reason(response),
    }
    return {
        **head(response, "chat.completion", model),
        "choices": [choice],
        "usage": usage(response["usage"]),
    }


def _message(response: Mapping[str, Any], reasoning: Sequence[str]) -> dict[str, Any]:
    texts = [text_of(item) for item in items_of(response, "message")]
    thoughts = [thought_of(item) for item in items_of(response, "reasoning")]
    calls = [tool_call(item) for item in items_of(response, *CALLS) if runnable(item)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": BETWEEN_TEXTS.join(texts) if texts else None,
        "refusal": None,
        "annotations": [],
    }
    if thoughts:
        message |= dict.fromkeys(reasoning, BETWEEN_THOUGHTS.join(thoughts))
    return message | ({"tool_calls": calls} if calls else {})


def _logprobs(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    parts = [part for item in items_of(response, "message") for part in item["content"]]
    return [entry for part in parts for entry in part.get("logprobs") or ()]
