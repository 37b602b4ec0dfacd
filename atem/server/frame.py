"""Around every request: its id, its line in the log, and an answer whatever breaks.

Rules: the log has method, route, status, time and id; no text, no query, no
key. An error of ours is told to the client as that and no more. A handshake of a
WebSocket is a request like any other; its line comes when the connection ends.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import HTTPConnection
from starlette.websockets import WebSocketDisconnect

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

ID: Final = "atem.request_id"
"""Where a request's scope has its id."""

ANSWERED: Final = {"http.response.start", "websocket.http.response.start", "websocket.accept"}
"""The messages that have headers."""

SWITCHED: Final = 101
CLOSED: Final = 403
"""The status of a handshake: taken; closed without a word, which the server under us tells so."""

log = logging.getLogger("atem.server.access")


class Frame:
    """ASGI middleware around all other: an id and a line in the log."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or one WebSocket; whatever is neither passes by."""
        with continued(scope):
            if scope["type"] in ("http", "websocket"):
                await self._handle(scope, receive, send)
            else:
                await self._app(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        framed = _Framed(scope, send, self._service.quota)
        scope[ID] = framed.id
        try:
            await self._app(scope, receive, framed.send)
        except (Gone, WebSocketDisconnect):
            framed.status = LEFT
        finally:
            self._note(scope, framed)

    def _note(self, scope: Scope, framed: _Framed) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.request(route, framed.status)
        seconds = time.monotonic() - framed.began
        method = scope.get("method", "WebSocket")
        log.info("%s %s %d %.3fs %s", method, route, framed.status, seconds, framed.id)


class Caught:
    """ASGI middleware within all other, whose headers an error of ours needs as well."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request be handled; if that breaks before there is an answer, give one."""
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except (Gone, WebSocketDisconnect):
            raise
        except Exception as error:
            if ID not in scope:  # no request, but the beginning or the end of the server
                raise
            self._service.report(error, f"request {scope[ID]}")
            if not begun:
                await refused(HTTPConnection(scope), told(error))(scope, receive, send)


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
        if message["type"] in ANSWERED:
            self.status = message.get("status", SWITCHED)
            message = {**message, "headers": [*message.get("headers", ()), *self._headers()]}
        elif message["type"] == "websocket.close" and self.status == 0:
            self.status = CLOSED
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        took = int((time.monotonic() - self.began) * 1000)
        found: dict[str, Any] = {"x-request-id": self.id, "openai-processing-ms": took}
        if TENANT in self._scope:
            found |= self._quota.headers(self._scope[TENANT])
        return [(name.encode(), str(value).encode()) for name, value in found.items()]
