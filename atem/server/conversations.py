"""Conversations: items under an id of their own, which responses go on from and add to.

Rules: a conversation is one record, changed only as it was read, so that no
addition is lost, whichever server makes it. Only a response that came to a good
end adds to it (responses.md 1.10).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..responses.faults import ApiError, bad_value, not_found
from ..responses.ids import new_id
from ..responses.inputs import read_input
from .keeping import ids_of
from .store import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .store import Store

Item: TypeAlias = dict[str, Any]
Edit: TypeAlias = "Callable[[dict[str, Any], list[Item]], tuple[dict[str, Any], list[Item]]]"
"""From a conversation's object and items to others."""

PREFIX: Final = "conv"
MOST: Final = 20_000
"""Items of a conversation."""


def record(
    tenant: str, about: dict[str, Any], items: Sequence[Item], *, version: int = 0
) -> Record:
    """A conversation as it is kept. Its age counts from now."""
    if len(items) > MOST:
        raise bad_value("items", f"A conversation has at most {MOST} items.")
    body = {"conversation": about, "items": list(items)}
    return Record(tenant, about["id"], body, item_ids=ids_of(items), version=version)


def begun(metadata: Any) -> dict[str, Any]:
    """The object of a new conversation."""
    return {
        "id": new_id(PREFIX),
        "object": "conversation",
        "created_at": int(time.time()),
        "metadata": {} if metadata is None else metadata,
    }


async def conversation(store: Store, tenant: str, wanted: Any) -> Record:
    """The record of a conversation: an id, or an object with one. Raises ApiError (404)."""
    name = wanted.get("id") if isinstance(wanted, dict) else wanted
    found = await store.get(tenant, name) if isinstance(name, str) else None
    if found is None or "conversation" not in found.body:
        raise not_found(f"Conversation with id {str(name)[:100]!r} not found.")
    return found


async def extend(store: Store, tenant: str, wanted: Any, items: Sequence[Item]) -> None:
    """Add those of ``items`` that are not there yet, so that it may be tried again.

    Raises ApiError (404).
    """

    def longer(about: dict[str, Any], before: list[Item]) -> tuple[dict[str, Any], list[Item]]:
        there = {item["id"] for item in before if item.get("id")}
        return about, [*before, *(item for item in items if item.get("id") not in there)]

    await change(store, tenant, wanted, longer)


async def change(store: Store, tenant: str, wanted: Any, edit: Edit) -> dict[str, Any]:
    """Change a conversation by ``edit``, which may be asked again; its object then.

    Raises ApiError (404), and what ``edit`` raises.
    """
    while True:
        found = await conversation(store, tenant, wanted)
        about, items = edit(found.body["conversation"], found.body["items"])
        if await store.put(record(tenant, about, items, version=found.version)):
            return about


def new_items(given: Any) -> list[Item]:
    """``items`` of a request, as they are kept. Raises ApiError."""
    try:
        items, _ = read_input(given, lookup=None, new_id=new_id)
    except ApiError as error:
        param = (error.param or "items").replace("input", "items", 1)
        raise bad_value(param, error.message.replace("input", "items")) from error
    return [item.fields for item in items]
