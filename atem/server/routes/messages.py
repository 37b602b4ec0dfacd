"""``/messages``: Anthropic's Messages API.

Rules: a projection of the same reply; nothing is stored. A silent stream sends
pings. Errors have this API's form, also those of a path or a key.
Source: responses.md 1.12.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.anthropic import MessagesStream, display, from_messages, in_messages, message
from ...responses.faults import ApiError
from ..http import answer, endpoint
from ..pulse import steady
from ..reply import Reply
from ..streams import named
from .responses import notes, streamed, whole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response

    from ..http import Call


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [
        Route(f"{prefix}/messages", endpoint(create), methods=["POST"]),
        Route(f"{prefix}/messages/count_tokens", endpoint(count), methods=["POST"]),
    ]


async def create(call: Call) -> Any:
    """Write a message: in one piece, or as a stream."""
    body = await call.body()
    try:
        ask, left_out = await call.service.read(from_messages(body), call.tenant)
    except ApiError as error:
        raise in_messages(error, body) from error
    headers = notes(call.service, ask, left_out)
    reply = Reply(call.service, ask, call.tenant)
    shown = display(body)
    if ask.stream:
        return streamed(call.service, _parts(reply, MessagesStream(display=shown)), headers)
    response = await whole(call, reply)
    ended_by = reply.builder.stopped_by
    return answer(message(response, display=shown, stop_sequence=ended_by), headers=headers)


async def count(call: Call) -> Response:
    """How many tokens the prompt of a message has."""
    body = await call.body()
    try:
        made = from_messages(body, counting=True)
        tokens = await call.service.count(made, call.tenant)
    except ApiError as error:
        raise in_messages(error, body) from error
    return answer({"input_tokens": tokens})


async def _parts(reply: Reply, events: MessagesStream) -> AsyncGenerator[bytes, None]:
    async with aclosing(steady(reply)) as batches:
        async for batch in batches:
            events.stop_sequence = reply.builder.stopped_by
            yield b"".join(named(made) for event in batch for made in events.feed(event))
