"""The response object: every key, always.

Rules: a key that is unset is null or its default, never absent (but for ``user``
and ``conversation``, which strict clients don't take as null). What the request
said comes from ``echo``; the rest is what became of it. Source: responses.md 1.2.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Status: TypeAlias = Literal[
    "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
]

DEFAULTS: Final[dict[str, Any]] = {
    "model": "",
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": {"effort": None, "summary": None},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}
"""What the object says of a request that said nothing."""

NOT_NULL: Final = ("user", "conversation")
"""Left out when unset."""


def envelope(
    echo: Mapping[str, Any],
    *,
    id: str,  # noqa: A002 - the API's name for it
    created_at: int,
    status: Status = "in_progress",
    output: Sequence[Mapping[str, Any]] = (),
    usage: Mapping[str, Any] | None = None,
    completed_at: int | None = None,
    error: Mapping[str, Any] | None = None,
    incomplete_details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A response object of its own: changing it, or what it was made of, changes nothing else.

    ``echo`` holds the keys that repeat the request, with effective values;
    times are whole seconds since 1970.
    """
    said = {key: value for key, value in echo.items() if value is not None or key not in NOT_NULL}
    return deepcopy(
        {
            "id": id,
            "object": "response",
            "created_at": created_at,
            "completed_at": completed_at,
            "status": status,
            "incomplete_details": incomplete_details,
            "error": error,
            **DEFAULTS,
            **said,
            "output": list(output),
            "usage": usage,
        }
    )
