"""What a request is refused with: the errors of the API, by kind.

Rules: one class, and a function for each kind of refusal, so that status and
code are chosen here alone. A message says what was found, where, and what to
send instead. It quotes no more than a few words of a request, and never a
conversation. Source: responses.md 1.13.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import AtemError

INVALID: Final = "invalid_request_error"
SERVER: Final = "server_error"
RATE: Final = "rate_limit_error"


class ApiError(AtemError):
    """A refusal as a client sees it: HTTP ``status``, and ``body()``.

    ``code`` is a word or None, ``param`` the path of the field that is wrong
    (``input[3].call_id``) or None. ``retry_after`` is seconds until it is worth
    another try, where that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = INVALID,  # noqa: A002 - the API's name for it
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The JSON of an HTTP answer."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


def bad_value(param: str | None, message: str, *, code: str = "invalid_value") -> ApiError:
    """400: the field ``param`` has a value that can't work."""
    return ApiError(message, code=code, param=param)


def missing(param: str, message: str | None = None) -> ApiError:
    """400: the field ``param`` has to be there."""
    text = message or f"Missing required parameter: {param!r}."
    return ApiError(text, code="missing_required_parameter", param=param)


def unsupported(param: str | None, message: str) -> ApiError:
    """400: what ``param`` asks for is not to be had here."""
    return ApiError(message, code="unsupported_parameter", param=param)


def bad_schema(param: str, message: str) -> ApiError:
    """400: a JSON Schema that can't be used for structured output."""
    return ApiError(message, code="invalid_json_schema", param=param)


def bad_blob(param: str) -> ApiError:
    """400: encrypted content that is not ours, or of another model, and can't be done without."""
    message = f"{param} was not made here for this model, so that it can't be read."
    return ApiError(message, code="invalid_encrypted_content", param=param)


def too_long(tokens: int | None, context: int) -> ApiError:
    """400: the input alone fills the context (both in tokens); None is far too many to count."""
    many = "many more" if tokens is None else tokens
    message = (
        f"This model's maximum context length is {context} tokens, and the input has {many}. "
        'Send less, or set truncation to "auto".'
    )
    return ApiError(message, code="context_length_exceeded", param="input")


def previous_not_found(response_id: str) -> ApiError:
    """400: ``previous_response_id`` names nothing that is stored for this client."""
    message = f"Previous response with id {response_id!r} not found."
    return ApiError(message, code="previous_response_not_found", param="previous_response_id")


def not_found(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """404: there is no such thing."""
    return ApiError(message, status=404, code=code, param=param)


def model_not_found(model: str) -> ApiError:
    """404: no such model is served."""
    message = f"The model {model!r} does not exist here; GET /v1/models lists those that do."
    return not_found(message, param="model", code="model_not_found")


def unauthorized(message: str = "Incorrect API key provided.") -> ApiError:
    """401: no key, or an unknown one."""
    return ApiError(message, status=401, code="invalid_api_key")


def rate_limited(message: str, *, retry_after: float | None = None) -> ApiError:
    """429: too many at once, or too often; the server adds ``Retry-After``."""
    return ApiError(
        message, status=429, type=RATE, code="rate_limit_exceeded", retry_after=retry_after
    )


def overloaded(message: str) -> ApiError:
    """503: loading, or going down; the server adds ``Retry-After``."""
    return ApiError(message, status=503, type=SERVER, code="server_is_overloaded")


def server_error(message: str, *, status: int = 500) -> ApiError:
    """500, or 502 and 504 for an engine that broke or was too slow."""
    return ApiError(message, status=status, type=SERVER)
