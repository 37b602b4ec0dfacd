"""``/messages``: Anthropic's Messages API.

Rules: a projection of the same reply. A silent stream sends pings. Errors have
this API's form, also those of a path or a key. Source: responses.md 1.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.anthropic import MessagesStream, display, from_messages, in_messages, message
from ...responses.faults import ApiError
from ...responses.truncation import input_tokens
from ..http import answer, endpoint
from ..streams import named
from .projected import Form, projected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from starlette.responses import Response

    from ..http import Call
    from ..reply import Reply
    from .projected import Body


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [
        Route(f"{prefix}/messages", endpoint(create), methods=["POST"]),
        Route(f"{prefix}/messages/count_tokens", endpoint(count), methods=["POST"]),
    ]


async def create(call: Call) -> Any:
    """Write a message."""
    return await projected(call, FORM)


async def count(call: Call) -> Response:
    """How many tokens the prompt of a message has."""
    body = await call.body()
    made = from_messages(body, counting=True)
    try:
        tokens = await call.service.count(made, call.tenant)
    except ApiError as error:
        raise in_messages(error, body) from error
    return answer({"input_tokens": tokens})


def _whole(reply: Reply, body: Body) -> Body:
    ended_by = reply.builder.stopped_by
    return message(reply.response, display=display(body), stop_sequence=ended_by)


def _parts(reply: Reply, body: Body) -> Callable[[Mapping[str, Any]], Iterable[bytes]]:
    service, known = reply.service, 0
    if service.tokenizer is not None:  # it was counted before, so that this is at once
        known = input_tokens(reply.ask, service.tokenizer, service.engine.info)
    events = MessagesStream(display=display(body), input_tokens=known)

    def parts(event: Mapping[str, Any]) -> Iterable[bytes]:
        events.stop_sequence = reply.builder.stopped_by
        return map(named, events.feed(event))

    return parts


FORM = Form(from_messages, in_messages, _whole, _parts)
