"""A process that serves: a socket, uvicorn, and an orderly end.

Rules: at the first SIGTERM or Ctrl-C nothing new is taken, /ready says so, and
what runs may finish; at the second the process ends. The log goes to standard
error, one line a request.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from errno import EADDRINUSE
from typing import TYPE_CHECKING, Final

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ..errors import OptionError
from .store.network import StoreUnreachable
from .store.sqlite_file import default_path

if TYPE_CHECKING:
    from types import FrameType

    from starlette.applications import Starlette
    from uvicorn._types import ASGISendEvent

    from .service import Service
    from .settings import Settings

LINE: Final = "%(asctime)s %(levelname)s %(message)s"
KEEP_ALIVE: Final = 75
PING_SECONDS: Final = 20.0
LAST_SECONDS: Final = 5
HEAD_BYTES: Final = 64 << 10
BACKLOG: Final = 2048
COLLECTED: Final = 20_000
"""New objects after which the collector looks for rings of them; at Python's own 700 it takes a
tenth of the time of a server with hundreds of streams."""


def serve(app: Starlette) -> None:
    """Serve ``app`` until it is told to end.

    Raises OptionError for an address that is taken, and a store that is not there.
    """
    service: Service = app.state.service
    settings = service.settings
    logging.basicConfig(stream=sys.stderr, format=LINE, level=settings.log_level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    gc.freeze()  # what is loaded by now stays
    gc.set_threshold(COLLECTED)
    with listen(settings.host, settings.port) as listening:
        host, port = listening.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        log = logging.getLogger("atem.server")
        log.info("%s", kept(settings))
        log.info("%s on http://%s:%d/v1", ", ".join(service.names), name, port)
        server = Server(config_of(app, settings), service)
        server.run(sockets=[listening])
        if server.failure is not None:
            raise OptionError(
                f"store={settings.store!r} can't be used ({server.failure}); "
                "is it running, and are address, user and password in store_url right?"
            ) from server.failure


def kept(settings: Settings) -> str:
    """Where responses are kept, and how long, in words."""
    if settings.store == "off":
        return "nothing is kept"
    where = f"the {settings.store} store"
    if settings.store == "sqlite":
        where = str(settings.store_path or default_path())
    return f"responses are kept in {where}, for {settings.store_days:g} days"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OptionError for an address that can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = "it is taken; choose another with --port" if error.errno == EADDRINUSE else error
        raise OptionError(f"can't listen on {host}:{port}: {why}") from error
    # Taken over by its connections. asyncio sets it only on sockets that it makes itself, and
    # without it the second packet of an answer waits 40 ms for the client's word on the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def config_of(app: Starlette, settings: Settings) -> uvicorn.Config:
    """uvicorn's settings for ``app``."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LAST_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws=Sockets if settings.websocket else "none",
        ws_max_size=settings.max_body,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
    )


class Sockets(WebSocketsSansIOProtocol):
    """uvicorn's WebSockets, which know that a refusal completes a handshake.

    Else each refusal would be followed by an error in the log that none was sent.
    """

    async def send(self, message: ASGISendEvent) -> None:
        """See uvicorn."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True


class Server(uvicorn.Server):
    """uvicorn's server, which finishes what it has begun."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = False
        self.failure: StoreUnreachable | None = None
        """Why it didn't even begin."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._service.store.size()
        except StoreUnreachable as failure:
            self.failure = failure
            self.should_exit = True
        else:
            await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal begins the end, the second is the end."""
        if self._told or self._loop is None:
            super().handle_exit(sig, frame)
            return
        self._told = True
        self._loop.call_soon_threadsafe(lambda: self._service.spawn(self._end()))

    async def _end(self) -> None:
        seconds = self._service.settings.drain_seconds
        running = len(self._service.replies)
        log = logging.getLogger("atem.server")
        log.info("ending; %d responses may finish within %g s", running, seconds)
        await self._service.drain(seconds)
        self.should_exit = True
