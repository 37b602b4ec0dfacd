"""Lists in pages, as the API has them.

Rules: ``after`` is the id of the last entry of the page before, in the order
that is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...responses.faults import bad_value

if TYPE_CHECKING:
    from collections.abc import Sequence


def page(
    items: Sequence[dict[str, Any]], *, limit: int, order: str = "desc", after: str | None = None
) -> dict[str, Any]:
    """At most ``limit`` of ``items``, which stand in the order of time. Raises ApiError (400)."""
    if order not in ("asc", "desc"):
        raise bad_value("order", 'order is "asc" or "desc".')
    found = list(items if order == "asc" else reversed(items))
    if after is not None:
        ids = [item.get("id") for item in found]
        if after not in ids:
            raise bad_value("after", f"There is no item {after[:100]!r} in this list.")
        found = found[ids.index(after) + 1 :]
    shown = found[:limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0].get("id") if shown else None,
        "last_id": shown[-1].get("id") if shown else None,
        "has_more": len(found) > limit,
    }
