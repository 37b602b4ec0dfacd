"""The Responses API over a WebSocket: requests and events as frames.

Rules: a frame is one JSON object; those that go out are the events of a stream
as they are. A lane answers one request after another, several lanes go side by
side. The connection remembers its own responses, also those that the client
doesn't want stored. What is wrong with a frame is told in an ``error`` frame,
and the connection goes on. Source: responses.md 1.9.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from starlette.websockets import WebSocketDisconnect

from ..responses.faults import ApiError, bad_value, missing, rate_limited, unsupported
from .encoding import decode, encode
from .http import told
from .noting import noted
from .pulse import steady
from .reply import Reply
from .store import Bounds
from .store.memory import MemoryStore

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from .service import Service

MAX_SECONDS: Final = 3600.0
"""Age of a connection; a client opens another."""

REMEMBERED: Final = Bounds(seconds=MAX_SECONDS, bytes=64 << 20)
LANES: Final = 32
WAITING: Final = 16
"""Requests that a lane may have waiting."""

RESTART: Final = 1012

Frame = dict[str, Any]


class Connection:
    """One WebSocket, accepted; ``tenant`` is in whose name it asks."""

    def __init__(self, service: Service, socket: WebSocket, tenant: str) -> None:
        self._service = service
        self._socket = socket
        self._tenant = tenant
        self._near = MemoryStore(REMEMBERED)
        self._lanes: dict[str | None, asyncio.Queue[Frame]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Answer until the client goes, the connection is too old, or the server ends."""
        reading = asyncio.ensure_future(self._read())
        ending = asyncio.ensure_future(self._service.ending.wait())
        either: set[asyncio.Task[Any]] = {reading, ending}
        try:
            await asyncio.wait(either, timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await self._finish(reading)
                await self._socket.close(RESTART)
        finally:
            tasks = {*either, *self._tasks}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish(self, reading: asyncio.Task[None]) -> None:
        """Let what was asked be answered, unless the client goes."""
        busy = [asyncio.ensure_future(lane.join()) for lane in self._lanes.values()]
        if busy:
            whole = asyncio.gather(*busy)
            either: set[asyncio.Future[Any]] = {whole, reading}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            whole.cancel()

    async def _read(self) -> None:
        try:
            while True:
                await self._take(await self._socket.receive_text())
        except (WebSocketDisconnect, KeyError):  # KeyError: a binary frame, which nobody sends
            return

    async def _take(self, text: str) -> None:
        lane: str | None = None
        try:
            frame = decode(text.encode("utf-8", "surrogatepass"))
            lane = _lane(frame)
            if frame.get("type") == "response.steer":
                await self._send(_not_steered(frame), lane)
            elif frame.get("type") == "response.create":
                self._queue(frame, lane)
            elif "type" in frame:
                raise bad_value("type", 'type is "response.create".')
            else:
                raise missing("type")
        except ApiError as error:
            await self._refuse(error, lane)

    def _queue(self, frame: Frame, lane: str | None) -> None:
        queue = self._lanes.get(lane)
        if queue is None:
            if len(self._lanes) >= LANES:
                raise rate_limited(f"This connection has {LANES} lanes already; use one of them.")
            queue = self._lanes[lane] = asyncio.Queue(WAITING)
            self._tasks.add(asyncio.ensure_future(self._serve(queue, lane)))
        try:
            queue.put_nowait(frame)
        except asyncio.QueueFull:
            raise rate_limited(f"{WAITING} requests wait in this lane already.") from None

    async def _serve(self, queue: asyncio.Queue[Frame], lane: str | None) -> None:
        while True:
            frame = await queue.get()
            try:
                await self._answer(frame, lane)
            except ApiError as error:
                await self._refuse(error, lane)
            except Exception as error:  # noqa: BLE001 - told to the client as that and no more
                self._service.report(error, "a request on a WebSocket")
                await self._refuse(told(error), lane)
            finally:
                queue.task_done()

    async def _answer(self, frame: Frame, lane: str | None) -> None:
        body = {key: frame[key] for key in frame if key not in ("type", "stream_id")}
        if body.get("background"):
            raise unsupported("background", "background responses are asked for over HTTP.")
        ask, left_out = await self._service.read(body, self._tenant, near=(self._near,))
        noted(ask, self._service.engine.info, left_out)  # in the log alone: a frame has no header
        reply = Reply(self._service, ask, self._tenant, self._near)
        async with aclosing(steady(reply, self._service.settings.heartbeat)) as batches:
            async for events in batches:
                for event in events:
                    await self._send(event, lane)

    async def _refuse(self, error: ApiError, lane: str | None) -> None:
        await self._send({"type": "error", "status": error.status, **error.body()}, lane)

    async def _send(self, frame: Frame, lane: str | None) -> None:
        named = frame if lane is None else {**frame, "stream_id": lane}
        text = encode(named).decode("utf-8")
        patience = self._service.settings.slow_reader_seconds
        async with self._sending, asyncio.timeout(patience):
            await self._socket.send_text(text)


def _lane(frame: Frame) -> str | None:
    lane = frame.get("stream_id")
    if lane is not None and not (isinstance(lane, str) and 0 < len(lane) <= 100):
        raise bad_value("stream_id", "stream_id is a string of 1 to 100 characters.")
    return lane


def _not_steered(frame: Frame) -> Frame:
    error = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "A response can't be steered here; send another request after it.",
    }
    steer = {key: frame[key] for key in ("input", "previous_response_id") if key in frame}
    return {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}
