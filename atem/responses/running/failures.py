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

from typing import Final

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


def failure_of(error: BaseException) -> dict[str, str]:
    """The ``error`` of a response that failed because of ``error``."""
    told = status_of(error)
    code = SERVER if told.status >= 500 else told.code or "invalid_prompt"
    return {"code": code, "message": told.message}


def status_of(error: BaseException) -> ApiError:
    """What a response in one piece is answered with that ended in ``error``."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, EngineError) and not isinstance(error, Unsupported):
        return refusal_of(error)
    return server_error(str(error) if isinstance(error, AtemError) else UNKNOWN)


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
        case RemoteError(status=504) | RemoteError(late=True):
            return server_error(text, status=504)
        case RemoteError():
            return server_error(text, status=502)
    return server_error(text)
