"""The Responses API over a WebSocket: requests and events as frames.

Rules: a frame is one JSON object; those that go out are the events of a stream
as they are. A lane answers one request after another, several lanes go side by
side. The connection remembers its own responses, also those that the client
doesn't want stored. What is wrong with a frame is told in an ``error`` frame,
and the connection goes on. At its end what was asked before is answered, and
nothing more is taken. Source: responses.md 1.9.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from starlette.websockets import WebSocketDisconnect

from ..responses.faults import ApiError, bad_value, missing, rate_limited, unsupported
from .encoding import encode, read
from .http import told
from .presence import Gone
from .pulse import steady
from .store import Bounds
from .store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.websockets import WebSocket

    from .service import Service

MAX_SECONDS: Final = 3600.0
"""Age of a connection; a client opens another."""

REMEMBERED: Final = Bounds(seconds=MAX_SECONDS, bytes=64 << 20)
LANES: Final = 32
"""Lanes at work at once."""
WAITING: Final = 16
"""Requests that a lane may have waiting."""

ROOM: Final = 64 << 20
"""Bytes of the requests that wait, but for a single one, which may be larger."""

RESTART: Final = 1012
UNSUPPORTED: Final = 1003
"""Why a connection is closed that sends bytes."""

OVER: Final = "websocket_connection_limit_reached"
NO_MORE: Final = "This connection is being closed; open another and send the request again."

Frame = dict[str, Any]


class Connection:
    """One WebSocket, accepted; ``tenant`` is in whose name it asks."""

    def __init__(self, service: Service, socket: WebSocket, tenant: str) -> None:
        self._service = service
        self._socket = socket
        self._tenant = tenant
        self._near = MemoryStore(REMEMBERED)
        self._lanes: dict[str | None, deque[tuple[Frame, int]]] = {}
        """What waits in each lane that is at work, with its bytes."""
        self._waiting = 0
        """Bytes of all that waits."""
        self._written: dict[str, str | None] = {}
        """Id of a response that is being written -> its lane."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sending = asyncio.Lock()
        self._ending = False
        self._reading: asyncio.Task[Any]

    async def run(self) -> None:
        """Answer until the client goes, the connection is too old, or the server ends."""
        gone = self._reading = self._begin(self._read())
        ending = self._begin(self._service.ending.wait())
        try:
            await asyncio.wait(
                {gone, ending}, timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not gone.done():
                self._ending = True
                await self._finish(gone)
            if not gone.done():
                await self._socket.close(RESTART)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _finish(self, gone: asyncio.Task[Any]) -> None:
        """Let what was asked be answered, unless the client goes."""
        while self._lanes and not gone.done():
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _read(self) -> None:
        try:
            while True:
                await self._take(await self._socket.receive_text())
        except (WebSocketDisconnect, Gone):
            return
        except KeyError:  # a binary frame
            await self._socket.close(UNSUPPORTED, "send text frames")

    async def _take(self, text: str) -> None:
        lane: str | None = None
        try:
            body = text.encode("utf-8", "surrogatepass")
            frame = await read(body)
            lane = _lane(frame)
            if frame.get("type") == "response.steer":
                await self._decline(frame, lane)
            elif frame.get("type") == "response.create":
                self._queue(frame, lane, len(body))
            elif "type" in frame:
                raise bad_value("type", 'type is "response.create".')
            else:
                raise missing("type")
        except ApiError as error:
            await self._refuse(error, lane)

    async def _decline(self, frame: Frame, lane: str | None) -> None:
        """Say that nothing is steered, in the lane of what was to be; the input goes back."""
        for key in ("previous_response_id", "input"):
            if frame.get(key) is None:
                raise missing(key)
        steered = frame["previous_response_id"]
        if isinstance(steered, str):
            lane = self._written.get(steered, lane)
        await self._send(_not_steered(frame), lane)

    def _queue(self, frame: Frame, lane: str | None, size: int) -> None:
        if self._ending:
            raise ApiError(NO_MORE, code=OVER)
        if self._waiting and self._waiting + size > ROOM:
            raise rate_limited(f"Requests of {ROOM} bytes wait in this connection already.")
        waiting = self._lanes.get(lane)
        if waiting is None:
            if len(self._lanes) >= LANES:
                raise rate_limited(f"{LANES} lanes of this connection are at work; wait for one.")
            self._lanes[lane] = deque([(frame, size)])
            self._begin(self._serve(lane))
        elif len(waiting) >= WAITING:
            raise rate_limited(f"{WAITING} requests wait in this lane already.")
        else:
            waiting.append((frame, size))
        self._waiting += size

    async def _serve(self, lane: str | None) -> None:
        """Answer what waits in a lane, until nothing does."""
        try:
            while waiting := self._lanes[lane]:
                frame, size = waiting.popleft()
                self._waiting -= size
                await self._answered(frame, lane)
        except Gone:
            self._reading.cancel()  # one that takes nothing is as good as gone
        finally:
            del self._lanes[lane]

    async def _answered(self, frame: Frame, lane: str | None) -> None:
        try:
            await self._answer(frame, lane)
        except ApiError as error:
            await self._refuse(error, lane)
        except Gone:
            raise
        except Exception as error:  # noqa: BLE001 - told to the client as that and no more
            self._service.report(error, "a request on a WebSocket")
            await self._refuse(told(error), lane)

    async def _answer(self, frame: Frame, lane: str | None) -> None:
        body = {key: frame[key] for key in frame if key not in ("type", "stream_id")}
        if body.get("background"):
            raise unsupported("background", "background responses are asked for over HTTP.")
        # What has no effect is in the log alone: a frame has no header.
        reply, _ = await self._service.begin(body, self._tenant, self._near)
        self._written[reply.id] = lane
        try:
            async with aclosing(steady(reply, self._service.settings.heartbeat)) as batches:
                async for events in batches:
                    for event in events:
                        await self._send(event, lane)
        finally:
            del self._written[reply.id]

    async def _refuse(self, error: ApiError, lane: str | None) -> None:
        await self._send({"type": "error", "status": error.status, **error.body()}, lane)

    async def _send(self, frame: Frame, lane: str | None) -> None:
        """Send a frame. Raises Gone if the client left, or takes nothing for too long."""
        named = frame if lane is None else {**frame, "stream_id": lane}
        text = encode(named).decode("utf-8")
        patience = self._service.settings.slow_reader_seconds
        try:
            async with self._sending, asyncio.timeout(patience):
                await self._socket.send_text(text)
        except (TimeoutError, WebSocketDisconnect, RuntimeError):  # RuntimeError: it was closed
            raise Gone from None


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
    steer = {key: frame[key] for key in ("input", "previous_response_id")}
    return {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}
