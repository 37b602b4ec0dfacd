"""Errors in the form of this API.

Rules: the type follows from the HTTP status. The place is part of the message,
because this form has no field for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..faults import ApiError

TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}

TOO_LONG: Final = "prompt is too long: "
"""Clients that compact a conversation look for these words."""


NO_THREADS: Final = "thread_unsupported_request"
"""The code by which Anthropic's SDK knows that it has to send whole conversations."""


def error_body(error: ApiError, request_id: str | None = None) -> dict[str, Any]:
    """The JSON of an HTTP answer, and of the event that ends a stream that failed."""
    told: dict[str, Any] = {"type": _kind(error.status), "message": _words(error)}
    if error.code == NO_THREADS:
        told["details"] = {"error_code": NO_THREADS, "unsupported": [error.param]}
    body = {"type": "error", "error": told}
    return body if request_id is None else {**body, "request_id": request_id}


def _kind(status: int) -> str:
    return TYPES.get(status, TYPES[400] if status < 500 else "api_error")


def _words(error: ApiError) -> str:
    if error.code == "context_length_exceeded":
        return TOO_LONG + error.message
    if error.param is None or error.param in error.message:
        return error.message
    return f"{error.param}: {error.message}"
