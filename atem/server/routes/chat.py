"""``/chat/completions``: the Chat Completions API.

Rules: a projection of the same reply; nothing is stored. A silent stream sends
chunks that say nothing. Source: responses.md 1.11.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.chat import ChatStream, completion, from_chat, in_chat, wants_usage
from ...responses.faults import ApiError
from ..http import answer, endpoint
from ..pulse import steady
from ..reply import Reply
from ..streams import DONE, sse
from .responses import notes, streamed, whole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..http import Call


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [Route(f"{prefix}/chat/completions", endpoint(create), methods=["POST"])]


async def create(call: Call) -> Any:
    """Write a completion: in one piece, or as a stream."""
    body = await call.body()
    try:
        ask, left_out = await call.service.read(from_chat(body), call.tenant)
    except ApiError as error:
        raise in_chat(error, body) from error
    headers = notes(call.service, ask, left_out)
    reply = Reply(call.service, ask, call.tenant)
    if ask.stream:
        chunks = ChatStream(include_usage=wants_usage(body))
        return streamed(call.service, _parts(reply, chunks), headers)
    return answer(completion(await whole(call, reply)), headers=headers)


async def _parts(reply: Reply, chunks: ChatStream) -> AsyncGenerator[bytes, None]:
    async with aclosing(steady(reply)) as batches:
        async for events in batches:
            yield b"".join(sse(chunk) for event in events for chunk in chunks.feed(event))
    yield DONE
