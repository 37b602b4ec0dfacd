"""Items that are calls.

Rules: name, namespace and call id stand in the item from the start, and again
in the one that is done. What was streamed of a call that is then taken back
stays, with the status "incomplete". Source: responses.md 1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .open_item import OpenItem

if TYPE_CHECKING:
    from .outbox import Outbox


def call_item(
    kind: str, item_id: str, call_id: str, name: tuple[str | None, str]
) -> dict[str, Any]:
    """The fields that a function's and a custom tool's call share; ``name`` is the client's."""
    namespace, leaf = name
    item = {
        "id": item_id,
        "type": kind,
        "status": "in_progress",
        "call_id": call_id,
        "name": leaf,
    }
    return item | ({"namespace": namespace} if namespace else {})


class OpenCall(OpenItem):
    """A call whose input is text that grows: ``FIELD`` of the item, told by ``EVENTS``."""

    FIELD = ""
    EVENTS = ""

    def __init__(self, out: Outbox, index: int, item: dict[str, Any]) -> None:
        super().__init__(out, index, item | {self.FIELD: ""})
        self._pieces: list[str] = []

    def grow(self, text: str) -> None:
        """The next piece of its input; an empty one is none."""
        if text:
            self._pieces.append(text)
            self._put(f"{self.EVENTS}.delta", delta=text)

    def _finish(self) -> None:
        self.item[self.FIELD] = text = "".join(self._pieces)
        self._put(f"{self.EVENTS}.done", **{self.FIELD: text}, **self._again())

    def _again(self) -> dict[str, Any]:
        """What the event of the end repeats."""
        return {}


class OpenFunction(OpenCall):
    """A call of a function; its input is the JSON text of the arguments."""

    FIELD = "arguments"
    EVENTS = "function_call_arguments"

    def _again(self) -> dict[str, Any]:
        return {"name": self.item["name"]}


class OpenCustom(OpenCall):
    """A call of a custom tool; its input is free text."""

    FIELD = "input"
    EVENTS = "custom_tool_call_input"
