"""Server-sent events: bytes of a stream, sent to a client that may be slow or gone.

Rules: an event line, one line of JSON, an empty line. The head goes out with
the first part, so that what fails before it is an error with a status. A client
that takes nothing for too long is dropped; after the last part the body ends at
once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from .encoding import encode
from .presence import Gone, unless_gone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

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
    """An answer of ``parts``; an ASGI application. ``patience`` is seconds to send a part in."""

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        *,
        patience: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._parts = parts
        self._patience = patience
        head = {**HEADERS, **(headers or {})}
        self._head = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises Gone if the client leaves or is dropped, and what comes before a part."""
        try:
            await unless_gone(receive, self._send(send))
        finally:
            await self._parts.aclose()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self._head}
        part = await anext(self._parts, None)
        await send(start)
        while part is not None:
            await self._in_time(send, part)
            part = await anext(self._parts, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _in_time(self, send: Send, part: bytes) -> None:
        message = {"type": "http.response.body", "body": part, "more_body": True}
        try:
            # Not wait_for: Python 3.11's may lose a cancellation that comes as it returns.
            async with asyncio.timeout(self._patience):
                await send(message)
        except TimeoutError:
            raise Gone from None
