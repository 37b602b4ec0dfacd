"""Around every request: its id, its line in the log, and an answer whatever breaks.

Rules: the log has method, route, status, time and id; no text, no query, no
key. An error of ours is told to the client as that and no more.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request

from ..responses.ids import new_id
from .http import TENANT, refused, told
from .presence import Gone
from .tracing import continued

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .quota import Quota
    from .service import Service

SANE_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
LEFT: Final = 499
"""What the log says of a client that left: no status was wrong."""

log = logging.getLogger("atem.server.access")


class Frame:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; whatever isn't HTTP passes by."""
        with continued(scope):
            if scope["type"] == "http":
                await self._handle(scope, receive, send)
            else:
                await self._app(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        framed = _Framed(scope, send, self._service.quota)
        try:
            await self._app(scope, receive, framed.send)
        except Gone:
            framed.status = LEFT
        except Exception as error:  # noqa: BLE001 - this is where all of them end
            await self._broken(error, framed, Request(scope))
        finally:
            self._note(scope, framed)

    async def _broken(self, error: Exception, framed: _Framed, request: Request) -> None:
        self._service.report(error, f"request {framed.id}")
        if framed.status == 0:
            sent = refused(request, told(error))
            await sent(request.scope, request.receive, framed.send)

    def _note(self, scope: Scope, framed: _Framed) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.request(route, framed.status)
        seconds = time.monotonic() - framed.began
        log.info("%s %s %d %.3fs %s", scope["method"], route, framed.status, seconds, framed.id)


class _Framed:
    """One request: ``status`` is 0 until something was sent."""

    def __init__(self, scope: Scope, send: Send, quota: Quota) -> None:
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        self.id = given if SANE_ID.fullmatch(given) else new_id("req")
        self.began = time.monotonic()
        self.status = 0
        self._send = send
        self._scope = scope
        self._quota = quota

    async def send(self, message: Message) -> None:
        """Send, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *self._headers()]}
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        took = int((time.monotonic() - self.began) * 1000)
        found: dict[str, Any] = {"x-request-id": self.id, "openai-processing-ms": took}
        if TENANT in self._scope:
            found |= self._quota.headers(self._scope[TENANT])
        return [(name.encode(), str(value).encode()) for name, value in found.items()]
