"""The pieces that a message and its events share.

Rules: both say the same with the same ids, so that a stream and an answer in
one piece can't differ. A key that the API's document requires is there, null
where it has no meaning here. Source: responses.md 1.12.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...tools.definition import CUSTOM_INPUT
from ..outcome import CALLS, call_name, items_of, runnable, unfinished

if TYPE_CHECKING:
    from .request import Display

Fields: TypeAlias = Mapping[str, Any]
Block: TypeAlias = dict[str, Any]

NO_USAGE: Final[Fields] = {
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
    "input_tokens": 0,
    "output_tokens": 0,
}

ONLY_WHOLE: Final[Fields] = {
    "cache_creation": None,
    "inference_geo": None,
    "service_tier": "standard",
}
"""What the usage of a message has besides, and that of its last event hasn't."""

REASONS: Final = {"content_filter": "refusal"}
"""Reason of an incomplete response -> stop_reason; any other is "max_tokens"."""


def envelope(response: Fields, model: str | None) -> dict[str, Any]:
    """A message without content, as it is when it starts."""
    return {
        "id": f"msg_{str(response['id']).removeprefix('resp_')}",
        "type": "message",
        "role": "assistant",
        "model": response["model"] if model is None else model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {**usage(response["usage"]), **ONLY_WHOLE},
    }


def ending(response: Fields, stop_sequence: str | None) -> dict[str, Any]:
    """Why the message ended. ``stop_sequence`` is the string that ended it, if one did."""
    reason = _stop_reason(response, stop_sequence)
    ended_by = stop_sequence if reason == "stop_sequence" else None
    return {"stop_reason": reason, "stop_sequence": ended_by, "stop_details": None}


def _stop_reason(response: Fields, stop_sequence: str | None) -> str:
    reason = unfinished(response)
    if reason is not None:
        return REASONS.get(reason, "max_tokens")
    if any(map(runnable, items_of(response, *CALLS))):
        return "tool_use"
    return "end_turn" if stop_sequence is None else "stop_sequence"


def usage(used: Fields | None) -> dict[str, Any]:
    """``usage`` under this API's names; what was read from a cache is no input here."""
    used = used or NO_USAGE
    cached = used["input_tokens_details"]["cached_tokens"]
    thought = used["output_tokens_details"]["reasoning_tokens"]
    return {
        "input_tokens": used["input_tokens"] - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": used["output_tokens"],
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": None,
    }


def said(text: str) -> Block:
    """A text block."""
    return {"type": "text", "text": text, "citations": None}


def thinking(text: str, signature: str | None, display: Display) -> Block:
    """A thinking block. The signature is the blob that brings the reasoning back."""
    shown = text if display == "shown" else ""
    return {"type": "thinking", "thinking": shown, "signature": signature or ""}


def tool_use(item: Fields) -> tuple[Block, str]:
    """The block of a call with its input left out, and the JSON of that input."""
    block = {
        "type": "tool_use",
        "id": item["call_id"],
        "name": call_name(item),
        "input": {},
        "caller": {"type": "direct"},
    }
    if item["type"] == "function_call":
        return block, item["arguments"]
    return block, json.dumps({CUSTOM_INPUT: item["input"]}, ensure_ascii=False)
