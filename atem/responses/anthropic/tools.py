"""Tools and tool_choice of this API in the words of the Responses API.

Rules: a tool with a schema is a function. A search for deferred tools is one
that the server runs. Any other type names a tool that only its own service or
model knows: it goes on under its type, and is dropped and named there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .. import checks
from ..faults import missing

FUNCTION: Final = (None, "custom")
"""Types of a tool that the client declares; unlike there, "custom" is a function here."""

SEARCH: Final = "tool_search_tool"

KEPT: Final = ("name", "description", "strict", "defer_loading")

CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


def tools(given: Any) -> list[Any]:
    """``tools`` of a create body."""
    declared = checks.array(given, "tools")
    return [_tool(raw, f"tools[{place}]") for place, raw in enumerate(declared)]


def choice(fields: Mapping[str, Any]) -> str | dict[str, Any]:
    """``tool_choice`` of a create body."""
    kind = checks.one_of(*CHOICES, "tool")(fields.get("type"), "tool_choice.type")
    if kind != "tool":
        return CHOICES[kind]
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise missing("tool_choice.name")
    return {"type": "function", "name": name}


def _tool(raw: Any, where: str) -> dict[str, Any]:
    tool = checks.mapping(raw, where)
    kind = tool.get("type")
    if kind not in FUNCTION:
        name = checks.text(kind, f"{where}.type")
        if name.startswith(SEARCH):
            return {"type": "tool_search", "execution": "server"}
        return {"type": name, "name": tool.get("name")}
    if not isinstance(schema := tool.get("input_schema"), Mapping):
        raise missing(f"{where}.input_schema")
    kept = {key: tool[key] for key in KEPT if tool.get(key) is not None}
    return {"type": "function", **kept, "parameters": schema}
