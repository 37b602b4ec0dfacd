"""Responses in the store: what is kept of one, and how a conversation is put together again.

Rules: all items of a response are kept, calls and their outputs too. An answer
goes on from a whole chain or not at all: a missing link is an error, never a
gap. Source: responses.md 1.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..responses.faults import bad_value, not_found, previous_not_found
from .store import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .reply import Reply
    from .store import Store

LONGEST: Final = 200
"""Responses of a chain."""

CONTINUED: Final = ("completed", "incomplete")


def record_of(reply: Reply, response: dict[str, Any]) -> Record:
    """What is kept of ``reply``, whose object is ``response`` now."""
    items, previous = list(reply.ask.items), reply.ask.previous
    body = {"response": response, "input": items, "previous": previous}
    return Record(reply.tenant, reply.id, body, item_ids=ids_of([*items, *response["output"]]))


def ids_of(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The ids by which ``items`` are found, each once."""
    return tuple(dict.fromkeys(item["id"] for item in items if item.get("id")))


async def response_record(stores: Sequence[Store], tenant: str, response_id: str) -> Record:
    """The record of a response. Raises ApiError (404)."""
    record = await _first(stores, tenant, response_id)
    if record is None:
        raise not_found(f"Response with id {response_id!r} not found.")
    return record


async def _first(stores: Sequence[Store], tenant: str, record_id: str) -> Record | None:
    for store in stores:
        record = await store.get(tenant, record_id)
        if record is not None and "response" in record.body:
            return record
    return None


async def chain(stores: Sequence[Store], tenant: str, previous: Any) -> list[dict[str, Any]]:
    """The items of the response ``previous`` and of all before it, oldest first.

    Raises ApiError (400) if one of them is not there any more, is not finished,
    or there are too many.
    """
    links: list[Record] = []
    wanted = previous
    while wanted is not None:
        record = await _first(stores, tenant, wanted) if isinstance(wanted, str) else None
        if record is None:
            raise previous_not_found(str(wanted)[:100])
        _check(record, len(links))
        links.append(record)
        wanted = record.body["previous"]
    return [item for record in reversed(links) for item in items_of(record)]


def _check(record: Record, before: int) -> None:
    status = record.body["response"]["status"]
    if status not in CONTINUED:
        raise bad_value(
            "previous_response_id", f"Response {record.id!r} is {status}; it can't be continued."
        )
    if before >= LONGEST:
        raise bad_value(
            "previous_response_id",
            f"The conversation has more than {LONGEST} responses; send its items as input.",
        )


def items_of(record: Record) -> list[dict[str, Any]]:
    """The items that a response was asked with, then those that it answered; a conversation's."""
    if "response" not in record.body:
        return list(record.body["items"])
    return [*record.body["input"], *record.body["response"]["output"]]


async def referred(stores: Sequence[Store], tenant: str, items: Any) -> dict[str, dict[str, Any]]:
    """The stored items that the ``item_reference`` items of an input name, by id."""
    found: dict[str, dict[str, Any]] = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") == "item_reference":
            found |= await _item(stores, tenant, item.get("id"))
    return found


async def _item(stores: Sequence[Store], tenant: str, item_id: Any) -> dict[str, dict[str, Any]]:
    for store in stores if isinstance(item_id, str) else ():
        record = await store.find(tenant, item_id)
        for item in items_of(record) if record is not None else ():
            if item.get("id") == item_id:
                return {item_id: item}
    return {}
