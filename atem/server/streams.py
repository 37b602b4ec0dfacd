"""Server-sent events: bytes of a stream, sent to a client that may be slow or gone.

Rules: an event line, one line of JSON, an empty line. The head goes out with
the first part, so that what fails before it is an error with a status. A client
that takes nothing for too long is dropped; after the last part the body ends at
once.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from .encoding import encode
from .presence import unless_gone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractContextManager

    from starlette.types import Receive, Scope, Send

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
COMMENT: Final = b": still here\n\n"
DONE: Final = b"data: [DONE]\n\n"


def sse(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """``data`` as an event, with an event line if it has a name."""
    line = b"" if name is None else b"event: " + name.encode() + b"\n"
    return line + b"data: " + encode(data) + b"\n\n"


def named(event: Mapping[str, Any]) -> bytes:
    """An event whose name is its ``type``."""
    return sse(event, event["type"])


class EventStream:
    """An answer of ``parts``; an ASGI application.

    ``patience`` is seconds to send a part in; ``during`` is entered while it is open.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        *,
        patience: float,
        headers: Mapping[str, str] | None = None,
        during: AbstractContextManager[object] | None = None,
    ) -> None:
        self._parts = parts
        self._patience = patience
        self._during = during or nullcontext()
        self._since: float | None = None
        head = {**HEADERS, **(headers or {})}
        self._head = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises Gone if the client leaves or is dropped, and what comes before a part."""
        try:
            with self._during:
                await unless_gone(receive, self._send(send), self._stuck())
        finally:
            await self._parts.aclose()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self._head}
        time = asyncio.get_running_loop().time
        part = await anext(self._parts, None)
        await send(start)
        while part is not None:
            self._since = time()
            await send({"type": "http.response.body", "body": part, "more_body": True})
            self._since = None
            part = await anext(self._parts, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stuck(self) -> None:
        """Return once a part has waited for the client for too long; one timer for all parts."""
        time = asyncio.get_running_loop().time
        left = self._patience
        while left > 0:
            await asyncio.sleep(left)
            left = self._patience - (0 if self._since is None else time() - self._since)
