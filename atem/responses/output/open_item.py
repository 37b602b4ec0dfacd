"""An item in the making: what all kinds of it have in common.

Rules: ``output_item.added`` when it is made, ``output_item.done`` when it is
closed, each with a copy of the item as it is then. Source: responses.md 1.7.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from .outbox import Outbox

ItemStatus: TypeAlias = Literal["completed", "incomplete"]


class OpenItem:
    """One item of the output, at the place ``index`` of it.

    ``item`` is what it is so far. ``ended``: all of it has been written, though
    it isn't closed yet.
    """

    def __init__(self, out: Outbox, index: int, item: dict[str, Any]) -> None:
        self.item = item
        self.ended = False
        self._out = out
        self._index = index
        out.put("output_item.added", output_index=index, item=deepcopy(item))

    def close(self, status: ItemStatus = "completed", **changes: Any) -> dict[str, Any]:
        """Tell that it is over; the finished item, ``changes`` made to it."""
        self._finish()
        if "status" in self.item:
            self.item["status"] = status
        self.item |= changes
        self._out.put("output_item.done", output_index=self._index, item=deepcopy(self.item))
        return self.item

    def _finish(self) -> None:
        """The closing events of the kind, before ``output_item.done``."""

    def _put(self, kind: str, **fields: Any) -> None:
        """An event of this item."""
        self._out.put(kind, item_id=self.item["id"], output_index=self._index, **fields)
