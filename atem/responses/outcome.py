"""What a response came to, as the other APIs need to know it.

Rules: read from finished items and from the response object, never from the
model's text. A call counts only when its item is completed: neither of the
other APIs can take back a call that it has shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..wire import dotted
from .faults import INVALID, RATE, SERVER, ApiError

Fields: TypeAlias = Mapping[str, Any]
Event: TypeAlias = dict[str, Any]
"""One of a response, ready for JSON."""

CALLS: Final = ("function_call", "custom_tool_call")

TEXT_DELTA: Final = "response.output_text.delta"
THOUGHT_DELTAS: Final = (
    "response.reasoning_text.delta",
    "response.reasoning.delta",
    "response.reasoning_summary_text.delta",
)
"""Names of the events that bring reasoning, whichever form was asked for (responses.md 1.7)."""

ENDS: Final = ("response.completed", "response.incomplete", "response.failed")

FAILURES: Final = {
    "rate_limit_exceeded": (429, RATE),
    "server_is_overloaded": (503, SERVER),
    "invalid_prompt": (400, INVALID),
    "context_length_exceeded": (400, INVALID),
}
"""Code of a failed response -> status and type of the error; others are 500."""

CANCELLED: Final = "The response was cancelled."


def runnable(item: Fields) -> bool:
    """Whether ``item`` is a call that a client may run."""
    return item["type"] in CALLS and item.get("status") == "completed"


def call_name(item: Fields) -> str:
    """The one name of a call, for an API without namespaces."""
    return dotted(item.get("namespace"), str(item["name"]))


def text_of(item: Fields) -> str:
    """What a message says."""
    return "".join(part.get("text", "") for part in item["content"])


def thought_of(item: Fields) -> str:
    """What a reasoning item tells, as itself or as a summary."""
    return "".join(part["text"] for part in (item.get("content") or item.get("summary") or ()))


def unfinished(response: Fields) -> str | None:
    """Why the response is incomplete; None if it isn't."""
    details = response.get("incomplete_details") or {}
    return details.get("reason") if response["status"] == "incomplete" else None


def failure(response: Fields) -> ApiError | None:
    """The error of a response that failed or was cancelled; None for any other."""
    if response["status"] == "cancelled":
        return ApiError(CANCELLED, status=500, type=SERVER)
    if response["status"] != "failed":
        return None
    error = response.get("error") or {}
    code = error.get("code")
    status, kind = FAILURES.get(code or "", (500, SERVER))
    return ApiError(error.get("message") or "", status=status, type=kind, code=code)


def items_of(response: Fields, *kinds: str) -> Sequence[Fields]:
    """The items of ``response`` that are of one of these types, in order."""
    return [item for item in response["output"] if item["type"] in kinds]
