"""Lists in pages, as the API has them.

Rules: ``after`` is the id of the last entry of the page before, in the order
that is asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ...responses.faults import bad_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NUMBER: Final = re.compile("-?[0-9]{1,10}")


def asked(query: Mapping[str, str]) -> dict[str, Any]:
    """The options of :func:`page` that a query has. Raises ApiError (400)."""
    return {
        "limit": whole_number("limit", query.get("limit", "20"), least=1, most=100),
        "order": query.get("order", "desc"),
        "after": query.get("after"),
    }


def whole_number(name: str, text: str, *, least: int, most: int = 1 << 31) -> int:
    """A number of a query. Raises ApiError (400)."""
    number = int(text) if NUMBER.fullmatch(text) else None
    if number is None or not least <= number <= most:
        raise bad_value(name, f"{name} is a whole number from {least} to {most}.")
    return number


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
