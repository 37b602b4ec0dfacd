"""``/conversations`` and their items.

Rules: what is changed is changed under the service's lock. Source:
responses.md 1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.checks import metadata
from ...responses.faults import bad_value, missing, not_found
from .. import conversations
from ..http import answer, endpoint
from .paging import asked, page

if TYPE_CHECKING:
    from starlette.responses import Response

    from ..http import Call
    from ..store import Record


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    one = f"{prefix}/conversations/{{id}}"
    return [
        Route(f"{prefix}/conversations", endpoint(create), methods=["POST"]),
        Route(one, endpoint(read), methods=["GET"]),
        Route(one, endpoint(update), methods=["POST"]),
        Route(one, endpoint(delete), methods=["DELETE"]),
        Route(f"{one}/items", endpoint(items), methods=["GET"]),
        Route(f"{one}/items", endpoint(add), methods=["POST"]),
        Route(f"{one}/items/{{item}}", endpoint(item), methods=["GET"]),
        Route(f"{one}/items/{{item}}", endpoint(remove), methods=["DELETE"]),
    ]


async def create(call: Call) -> Response:
    """Begin one, with items or without."""
    if call.service.settings.store == "off":
        raise bad_value(None, "Conversations need a store, and this server keeps nothing.")
    body = await call.body()
    about = conversations.begun(_metadata(body))
    given = conversations.new_items(body.get("items") or [])
    await call.service.store.put(conversations.record(call.tenant, about, given))
    return answer(about)


async def read(call: Call) -> Response:
    """The conversation, without its items."""
    return answer((await _record(call)).body["conversation"])


async def update(call: Call) -> Response:
    """Other metadata."""
    body = await call.body()
    if "metadata" not in body:
        raise missing("metadata")
    async with call.service.lock:
        found = await _record(call)
        about = {**found.body["conversation"], "metadata": _metadata(body) or {}}
        await _put(call, about, found.body["items"])
    return answer(about)


async def delete(call: Call) -> Response:
    """Forget it, items and all; responses that went on from it stay."""
    async with call.service.lock:
        found = await _record(call)
        await call.service.store.delete(call.tenant, found.id)
    return answer({"id": found.id, "object": "conversation.deleted", "deleted": True})


async def items(call: Call) -> Response:
    """Its items, in pages."""
    return answer(page((await _record(call)).body["items"], **asked(call.query)))


async def add(call: Call) -> Response:
    """Add items; answered are those that were added."""
    body = await call.body()
    if "items" not in body:
        raise missing("items")
    given = conversations.new_items(body["items"])
    async with call.service.lock:
        await conversations.extend(call.service.store, call.tenant, call.path["id"], given)
    return answer(page(given, limit=len(given), order="asc"))


async def item(call: Call) -> Response:
    """One item."""
    return answer(_found(await _record(call), call.path["item"]))


async def remove(call: Call) -> Response:
    """Take one item out; answered is the conversation."""
    async with call.service.lock:
        found = await _record(call)
        gone = _found(found, call.path["item"])
        about = found.body["conversation"]
        await _put(call, about, [each for each in found.body["items"] if each is not gone])
    return answer(about)


def _metadata(body: dict[str, Any]) -> Any:
    given = body.get("metadata")
    return None if given is None else metadata(given, "metadata")


def _found(record: Record, item_id: str) -> dict[str, Any]:
    every: list[dict[str, Any]] = record.body["items"]
    for each in every:
        if each.get("id") == item_id:
            return each
    raise not_found(f"There is no item {item_id[:100]!r} in this conversation.")


async def _record(call: Call) -> Record:
    return await conversations.conversation(call.service.store, call.tenant, call.path["id"])


async def _put(call: Call, about: dict[str, Any], whole: list[dict[str, Any]]) -> None:
    await call.service.store.put(conversations.record(call.tenant, about, whole))
