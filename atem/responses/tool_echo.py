"""Tools as the response object repeats them.

Rules: what the client sent, with the keys that strict clients want to see even
when they are null (responses.md 1.2), and without the keys that hold secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FUNCTION_KEYS: Final = ("name", "description", "parameters", "strict")
"""Always there in an echoed function."""

SECRET_KEYS: Final = ("authorization", "headers")
"""Of an ``mcp`` tool: what it is called with."""


def inner(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a tool's fields stand: Chat Completions nests them under the type."""
    nested = raw.get(raw.get("type") or "function")
    return nested if isinstance(nested, Mapping) else raw


def echo(raw: Mapping[str, Any]) -> dict[str, Any]:
    """One tool of the request, for the response object's ``tools``."""
    kind = raw.get("type") or "function"
    if kind == "function":
        return {"type": kind, **dict.fromkeys(FUNCTION_KEYS), **_without_type(inner(raw))}
    if kind == "namespace":
        members = [echo(member) for member in raw["tools"]]
        return {"type": kind, "description": "", **_without_type(raw), "tools": members}
    fields = {"type": kind, **_without_type(inner(raw))}
    return {key: value for key, value in fields.items() if key not in SECRET_KEYS}


def _without_type(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "type"}
