"""Tools and tool_choice, which this API nests under their type.

Rules: only the nesting is undone; what a tool may be is the Responses API's
question. A search for tools that the client would have to run has no form in a
chat's answer, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..faults import unsupported

SEARCH: Final = "tool_search"


def tools(given: Any) -> Any:
    """``tools`` of a create body."""
    if not isinstance(given, list | tuple):
        return given
    return [_tool(tool, f"tools[{place}]") for place, tool in enumerate(given)]


def choice(given: Any) -> Any:
    """``tool_choice`` of a create body."""
    made = _flat(given)
    if isinstance(made, Mapping) and isinstance(entries := made.get("tools"), list | tuple):
        return {**made, "tools": [_flat(entry) for entry in entries]}
    return made


def _tool(raw: Any, where: str) -> Any:
    tool = _flat(raw)
    if not isinstance(tool, Mapping):
        return tool
    if tool.get("type") == SEARCH and tool.get("execution") == "client":
        raise unsupported(where, f"{where}: a chat's answer has no form for {SEARCH} calls.")
    format_ = tool.get("format")
    if isinstance(format_, Mapping) and isinstance(nested := format_.get("grammar"), Mapping):
        return {**tool, "format": {"type": "grammar", **nested}}
    return tool


def _flat(given: Any) -> Any:
    """``{"type": T, T: {...}}`` without the nesting; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    kind = given.get("type")
    if kind is None and "function" in given:
        kind = "function"
    nested = given.get(kind) if isinstance(kind, str) else None
    return {**nested, "type": kind} if isinstance(nested, Mapping) else given
