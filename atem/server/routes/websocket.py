"""``/responses`` as a WebSocket.

Rules: who may not connect is told by an HTTP status at the handshake, so that a
client falls back to plain requests. Source: responses.md 1.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import WebSocketRoute

from ...responses.faults import ApiError, not_found, overloaded
from ..connection import Connection
from ..guard import check_origin
from ..http import refused

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from ..service import Service


def routes(prefix: str) -> list[WebSocketRoute]:
    """The routes of this file."""
    return [WebSocketRoute(f"{prefix}/responses", connect)]


async def connect(socket: WebSocket) -> None:
    """Accept, and answer until the end."""
    service: Service = socket.app.state.service
    try:
        tenant = _admitted(service, socket)
    except ApiError as error:
        await socket.send_denial_response(refused(socket, error))
        return
    await socket.accept()
    with service.metrics.stream("websocket"):
        await Connection(service, socket, tenant).run()


def _admitted(service: Service, socket: WebSocket) -> str:
    tenant = service.admit(socket.headers)
    check_origin(service.settings, socket.headers)  # a browser asks no leave for a WebSocket
    if not service.settings.websocket:
        raise not_found("There is no WebSocket here; send POST requests.")
    if service.draining:
        raise overloaded("The server is shutting down.")
    return tenant
