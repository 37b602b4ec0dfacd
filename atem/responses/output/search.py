"""Items of a search for tools.

Rules: a client's own search has a ``call_id`` for its output; one that is
answered here has none, and its output follows at once. Source: responses.md 1.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tool_echo import echo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...messages import ToolCall
    from ..tools import Declared


def search_call(item_id: str, call: ToolCall, *, server: bool) -> dict[str, Any]:
    """A search as it is announced; its ``arguments`` come when it is done."""
    return {
        "id": item_id,
        "type": "tool_search_call",
        "status": "in_progress",
        "call_id": None if server else call.id,
        "execution": "server" if server else "client",
        "arguments": {},
    }


def search_output(item_id: str, found: Iterable[Declared]) -> dict[str, Any]:
    """The tools that were found here, members of a namespace inside it."""
    return {
        "id": item_id,
        "type": "tool_search_output",
        "status": "in_progress",
        "call_id": None,
        "execution": "server",
        "tools": _declarations(found),
    }


def _declarations(found: Iterable[Declared]) -> list[dict[str, Any]]:
    spaces: dict[str, dict[str, Any]] = {}
    listed: list[dict[str, Any]] = []
    for tool in found:
        said = echo(tool.raw)
        if tool.namespace is None:
            listed.append(said)
            continue
        if tool.namespace not in spaces:
            spaces[tool.namespace] = {
                "type": "namespace",
                "name": tool.namespace,
                "description": tool.tool.namespace_description,
                "tools": [],
            }
            listed.append(spaces[tool.namespace])
        spaces[tool.namespace]["tools"].append(said)
    return listed
