"""What an engine raises, as the client is told.

Rules: before the first event it is an HTTP error, afterwards the end of the
response. The text of an error that atem raised on purpose is for anybody's eyes;
of any other error nothing is told. Codes of a failed response are chosen by what
Codex does: it asks again after "server_error" and, in a while,
"rate_limit_exceeded"; it gives up at "server_is_overloaded", which is a status
therefore and never such a code; "context_length_exceeded" makes it compact, and
stays, though the API's own list lacks it, because SDKs read any word. Source:
responses.md 1.13.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...errors import (
    AtemError,
    ContextOverflow,
    EngineClosed,
    EngineError,
    RemoteError,
    Unsupported,
)
from ..faults import ApiError, overloaded, rate_limited, server_error, unsupported

UNKNOWN: Final = "The server had an error while it worked on this response."
SERVER: Final = "server_error"
CODES: Final = ("context_length_exceeded", "rate_limit_exceeded")
"""What an engine's error may be called in a failed response; any other is SERVER."""


class Failure(NamedTuple):
    """The ``error`` of a failed response."""

    code: str
    message: str


def failure_of(error: BaseException) -> Failure:
    """What a response says that ends in ``error``."""
    if isinstance(error, ApiError):
        client = 400 <= error.status < 500
        return Failure(error.code or ("invalid_prompt" if client else SERVER), error.message)
    if isinstance(error, EngineError):
        refused = refusal_of(error)
        return Failure(refused.code if refused.code in CODES else SERVER, refused.message)
    return Failure(SERVER, str(error) if isinstance(error, AtemError) else UNKNOWN)


def status_of(error: BaseException) -> ApiError:
    """What a response in one piece is answered with that ended in ``error``."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, EngineError) and not isinstance(error, Unsupported):
        return refusal_of(error)
    return server_error(failure_of(error).message)


def refusal_of(error: EngineError) -> ApiError:
    """What a request is refused with that the engine refuses."""
    text = str(error)
    match error:
        case ContextOverflow():
            return ApiError(text, code="context_length_exceeded", param="input")
        case Unsupported():
            return unsupported(None, text)
        case EngineClosed():
            return overloaded(text)
        case RemoteError(status=429):
            return rate_limited(text)
        case RemoteError(status=503):
            return overloaded(text)
        case RemoteError():
            return server_error(text, status=502)
    return server_error(text)
