"""``/conversations`` and their items.

Rules: a change is made of what was read just before, or again. Source:
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

    from ..conversations import Item
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
    new = {"metadata": _metadata(body) or {}}
    return await _changed(call, lambda about, items: ({**about, **new}, items))


async def delete(call: Call) -> Response:
    """Forget it, items and all; responses that went on from it stay."""
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
    await conversations.extend(call.service.store, call.tenant, call.path["id"], given)
    return answer(page(given, limit=len(given), order="asc"))


async def item(call: Call) -> Response:
    """One item."""
    return answer(_found((await _record(call)).body["items"], call.path["item"]))


async def remove(call: Call) -> Response:
    """Take one item out; answered is the conversation."""
    name = call.path["item"]

    def without(about: Item, items: list[Item]) -> tuple[Item, list[Item]]:
        gone = _found(items, name)
        return about, [each for each in items if each is not gone]

    return await _changed(call, without)


def _metadata(body: dict[str, Any]) -> Any:
    given = body.get("metadata")
    return None if given is None else metadata(given, "metadata")


def _found(items: list[Item], item_id: str) -> Item:
    for each in items:
        if each.get("id") == item_id:
            return each
    raise not_found(f"There is no item {item_id[:100]!r} in this conversation.")


async def _record(call: Call) -> Record:
    return await conversations.conversation(call.service.store, call.tenant, call.path["id"])


async def _changed(call: Call, edit: conversations.Edit) -> Response:
    store = call.service.store
    return answer(await conversations.change(store, call.tenant, call.path["id"], edit))
