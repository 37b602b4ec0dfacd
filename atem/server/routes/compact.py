"""``/responses/compact``: a long conversation as a short one.

Rules: what the user said stays as it was said; everything else becomes one item
that only this server's model can read. Nothing is stored. Source: responses.md 1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from ...responses.faults import missing, server_error
from ..http import answer, endpoint
from .responses import whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response

    from ..http import Call

TAKEN: Final = ("model", "instructions", "previous_response_id", "prompt_cache_key")
"""Fields of the body that mean what they mean when a response is created."""


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [Route(f"{prefix}/responses/compact", endpoint(compact), methods=["POST"])]


async def compact(call: Call) -> Response:
    """The items that stand for the whole conversation from now on."""
    body = await call.body()
    given = body.get("input")
    if given is None and body.get("previous_response_id") is None:
        raise missing("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else (given or [])
    made = {key: body[key] for key in TAKEN if key in body} | {"store": False}
    if isinstance(items, list):
        items = [*items, {"type": "compaction_trigger"}]
    before, _ = await call.service.before(made, call.tenant)
    reply, headers = await call.service.begin({**made, "input": items}, call.tenant)
    response = await whole(call, reply)
    made_items = [item for item in response["output"] if item["type"] == "compaction"]
    if not made_items:
        raise server_error("The model's summary was cut off; allow a longer context.")
    body = {
        "id": response["id"],
        "object": "response.compaction",
        "created_at": response["created_at"],
        "output": [*_said([*before, *reply.ask.items]), *made_items],
        "usage": response["usage"],
    }
    return answer(body, headers=headers)


def _said(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the user said."""
    return [item for item in items if item["type"] == "message" and item["role"] == "user"]
