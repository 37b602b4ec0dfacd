"""The pieces that a completion and its chunks share.

Rules: both say the same with the same ids, so that a stream and an answer in
one piece can't differ. Source: responses.md 1.11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..outcome import CALLS, call_name, items_of, runnable, unfinished

Fields: TypeAlias = Mapping[str, Any]

REASONING: Final = ("reasoning_content",)
"""Where clients look for reasoning. ``reasoning`` is another name in use."""

BETWEEN_TEXTS: Final = "\n\n"
"""Between two messages of one turn, which are one text here."""
BETWEEN_THOUGHTS: Final = "\n"

FINISH: Final = {None: "stop", "content_filter": "content_filter"}
"""Reason of an incomplete response -> finish_reason; any other is "length"."""


def head(response: Fields, kind: str, model: str | None) -> dict[str, Any]:
    """The fields that every object of one answer repeats."""
    return {
        "id": f"chatcmpl-{str(response['id']).removeprefix('resp_')}",
        "object": kind,
        "created": response["created_at"],
        "model": response["model"] if model is None else model,
        "service_tier": response.get("service_tier"),
    }


def finish_reason(response: Fields) -> str:
    """Why the answer ended."""
    reason = unfinished(response)
    if reason is None and any(map(runnable, items_of(response, *CALLS))):
        return "tool_calls"
    return FINISH.get(reason, "length")


def tool_call(item: Fields) -> dict[str, Any]:
    """A call of a function or a custom tool."""
    name = call_name(item)
    if item["type"] == "function_call":
        function = {"name": name, "arguments": item["arguments"]}
        return {"id": item["call_id"], "type": "function", "function": function}
    return {
        "id": item["call_id"],
        "type": "custom",
        "custom": {"name": name, "input": item["input"]},
    }


def token_logprobs(entries: Sequence[Fields]) -> dict[str, Any] | None:
    """Log-probabilities of the answer's tokens; None where there are none."""
    if not entries:
        return None
    tokens = [
        {**_logprob(entry), "top_logprobs": [_logprob(top) for top in entry["top_logprobs"]]}
        for entry in entries
    ]
    return {"content": tokens, "refusal": None}


def _logprob(entry: Fields) -> dict[str, Any]:
    return {
        "token": entry["token"],
        "logprob": entry["logprob"],
        "bytes": entry.get("bytes"),
    }


def usage(used: Fields | None) -> dict[str, Any] | None:
    """``usage`` under this API's names; None while it is not known."""
    if used is None:
        return None
    cached = used["input_tokens_details"]["cached_tokens"]
    thought = used["output_tokens_details"]["reasoning_tokens"]
    return {
        "prompt_tokens": used["input_tokens"],
        "completion_tokens": used["output_tokens"],
        "total_tokens": used["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
