"""``/chat/completions``: the Chat Completions API.

Rules: a projection of the same reply. A silent stream sends chunks that say
nothing. Source: responses.md 1.11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.chat import ChatStream, completion, from_chat, in_chat, wants_usage
from ..http import endpoint
from ..streams import DONE, sse
from .projected import Form, projected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..http import Call
    from ..reply import Reply
    from .projected import Body


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [Route(f"{prefix}/chat/completions", endpoint(create), methods=["POST"])]


async def create(call: Call) -> Any:
    """Write a completion."""
    return await projected(call, FORM)


def _whole(reply: Reply, body: Body) -> Body:
    return completion(reply.response, reasoning=_keys(reply))


def _parts(reply: Reply, body: Body) -> Callable[[Mapping[str, Any]], Iterable[bytes]]:
    chunks = ChatStream(include_usage=wants_usage(body), reasoning=_keys(reply))
    return lambda event: map(sse, chunks.feed(event))


def _keys(reply: Reply) -> tuple[str, ...]:
    """The keys that the reasoning stands under."""
    chosen = reply.service.settings.chat_reasoning
    return ("reasoning_content", "reasoning") if chosen == "both" else (chosen,)


FORM = Form(from_chat, in_chat, _whole, _parts, last=DONE)
