"""Requests and answers in JSON.

Rules: every answer is JSON in the API's form, errors too, whatever caused them.
A body is read up to its limit, and only if it says that it is JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match, Route

from ..responses.anthropic import error_body as in_messages_form
from ..responses.faults import INVALID, ApiError, overloaded, server_error
from .encoding import encode, read
from .presence import Gone
from .store.network import StoreUnreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.exceptions import HTTPException
    from starlette.requests import HTTPConnection, Request
    from starlette.types import ASGIApp

    from .service import Service

TENANT: Final = "atem.tenant"
"""Where a request's scope says in whose name it asks."""

MESSAGES: Final = re.compile(r"(/v1)?/messages(/|$)")
RETRY_SECONDS: Final = 2.0
INTERNAL: Final = "The server had an error; the request id tells its people where to look."
AWAY: Final = "What the server keeps can't be reached at the moment; please try again."
RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may ask: the server's state, the request, in whose name."""

    service: Service
    request: Request
    tenant: str

    @property
    def path(self) -> Mapping[str, str]:
        """The names in its path."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the question mark."""
        return self.request.query_params

    async def body(self, most: int | None = None) -> dict[str, Any]:
        """The JSON object it brings, of ``most`` bytes. Raises ApiError (400, 413, 415)."""
        _check_type(self.request.headers)
        most = min(most or self.service.settings.max_body, self.service.settings.max_body)
        if int(_digits(self.request.headers.get("content-length"))) > most:
            raise _too_large(most)
        given = bytearray()
        try:
            async for part in self.request.stream():
                given += part
                if len(given) > most:
                    raise _too_large(most)
        except ClientDisconnect:
            raise Gone from None
        return await read(bytes(given))


def endpoint(
    handler: Callable[[Call], Awaitable[ASGIApp]],
) -> Callable[[Request], Awaitable[Any]]:
    """``handler`` behind the keys of the server."""

    async def guarded(request: Request) -> Any:
        service: Service = request.app.state.service
        tenant = request.scope[TENANT] = service.admit(request.headers)
        return await handler(Call(service, request, tenant))

    return guarded


def answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``value`` as an answer."""
    return Response(encode(value), status, dict(headers or {}), "application/json")


def refused(request: HTTPConnection, error: Exception) -> Response:
    """An ApiError as an answer."""
    assert isinstance(error, ApiError)
    headers = {}
    if error.status in (429, 503):
        seconds = error.retry_after or RETRY_SECONDS
        headers = {"retry-after": f"{ceil(seconds)}", "retry-after-ms": f"{ceil(1000 * seconds)}"}
    elif error.status not in RETRIED:
        headers = {"x-should-retry": "false"}
    return answer(error_body(request.url.path, error), status=error.status, headers=headers)


def told(error: Exception) -> ApiError:
    """What a client is told of an error of ours."""
    return overloaded(AWAY) if isinstance(error, StoreUnreachable) else server_error(INTERNAL)


def error_body(path: str, error: ApiError) -> dict[str, Any]:
    """The JSON of an error, in the form of the API that ``path`` belongs to."""
    return in_messages_form(error) if MESSAGES.match(path) else error.body()


def unrouted(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself: no such path, no such method."""
    raised: HTTPException = error  # type: ignore[assignment]
    where = f"{request.method} {request.url.path[:200]}"
    allowed = ", ".join(_methods(request))
    message = {404: f"There is no {where} here.", 405: f"There is no {where} here, but {allowed}."}
    found = ApiError(message.get(raised.status_code, raised.detail), status=raised.status_code)
    sent = refused(request, found)
    sent.headers.update(raised.headers or {})
    if raised.status_code == 405:
        sent.headers["allow"] = allowed
    return sent


def _methods(request: Request) -> list[str]:
    """Those that its path takes, of all routes; Starlette names only the first one's."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in fitting for method in route.methods or ()} - {"HEAD"})


def _check_type(headers: Mapping[str, str]) -> None:
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise ApiError(f"The body is {media[:60]!r}; send application/json.", status=415)
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise ApiError(f"The body is {coding[:60]!r}; send it uncompressed.", status=415)


def _digits(text: str | None) -> str:
    return text if text and text.isascii() and text.isdigit() and len(text) < 20 else "0"


def _too_large(most: int) -> ApiError:
    message = f"The body has more than {most} bytes."
    return ApiError(message, status=413, type=INVALID, code="request_too_large")
