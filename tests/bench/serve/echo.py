"""``python echo.py JSON``: what server-sent events cost in the same framework, and nothing else.

Rules: Starlette and uvicorn as the server has them, the same events in number and size at the same
pace. No thread, no model, no parser, no store: an event is made of a counter and a word, encoded
once and sent.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import orjson
import uvicorn
from plan import Plan, Stamps, words
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

ITEM = "msg_" + 24 * "0"
DELTA = "response.output_text.delta"


def event(kind: str, number: int, text: str) -> bytes:
    """An event with the keys of the API's."""
    body: dict[str, Any] = {
        "type": kind,
        "sequence_number": number,
        "item_id": ITEM,
        "output_index": 0,
        "content_index": 0,
        "delta": text,
        "logprobs": [],
    }
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(body) + b"\n\n"


def app(plan: Plan) -> Starlette:
    """The echo server."""
    stamps, said = Stamps(plan), words(plan.tokens)

    async def parts(stream: int) -> AsyncIterator[bytes]:
        due = time.monotonic_ns()
        for place, word in enumerate(said):
            due += plan.gap
            await asyncio.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            stamps.stamp(stream, place, due)
            yield event(DELTA, place, word)
        yield event("response.completed", plan.tokens, "")

    async def create(request: Request) -> StreamingResponse:
        body = await request.json()
        stream = int(body["input"].removeprefix("stream ").rstrip("."))
        return StreamingResponse(parts(stream), media_type="text/event-stream")

    return Starlette(routes=[Route(plan.path, create, methods=["POST"])])


def main() -> None:
    """Serve until told to end."""
    plan = Plan(**json.loads(sys.argv[1]))
    uvicorn.run(app(plan), port=plan.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
