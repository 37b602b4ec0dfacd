"""A call in one line, for tests."""

from __future__ import annotations

from typing import Any

from atem.messages import ToolCall


def call(
    name: str,
    arguments: dict[str, Any],
    *,
    id: str = "",  # noqa: A002  the field's name
    namespace: str | None = None,
    raw_name: str | None = None,
    recipient: str | None = None,
) -> ToolCall:
    return ToolCall(
        index=0,
        id=id,
        name=name,
        namespace=namespace,
        raw_name=raw_name or name,
        recipient=recipient or raw_name or name,
        arguments=arguments,
        arguments_json="",  # the renderer writes the values, not their JSON
    )
