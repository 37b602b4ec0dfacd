"""A turn, its events and its tools as JSON: the schema of docs/cli.md.

Rules: every field of an event stands under its own name, ``type`` before them
and ``span`` behind. Left out is what the rest says: ``arguments_json`` is the
JSON text of ``arguments``.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from ..parser.events import (
    ArgumentsDelta,
    CallEnd,
    CallRejected,
    CallStart,
    ContentDelta,
    Event,
    MessageEnd,
    MessageStart,
    Problem,
    ReasoningDelta,
    TurnEnd,
)
from ..parser.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..messages import Message, RejectedCall, ToolCall
    from ..parser.fold import Turn
    from ..tools import Tool

TYPES: Final[dict[type[Event], str]] = {
    MessageStart: "message_start",
    ReasoningDelta: "reasoning_delta",
    ContentDelta: "content_delta",
    CallStart: "call_start",
    ArgumentsDelta: "arguments_delta",
    CallEnd: "call_end",
    CallRejected: "call_rejected",
    MessageEnd: "message_end",
    Problem: "problem",
    TurnEnd: "turn_end",
}

# Some terminals obey U+0080 to U+009F like escape codes, some readers of lines break them at
# U+0085, U+2028 and U+2029, and a lone surrogate has no UTF-8 form.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def line(record: dict[str, Any]) -> bytes:
    """The record as one line of UTF-8 in which nothing but its end is a control character."""
    text = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", to_json(record))
    return text.encode() + b"\n"


def event_record(event: Event) -> dict[str, Any]:
    """One event: ``type``, its fields, ``span``."""
    found = event._asdict()
    span = [found.pop("start"), found.pop("end")]
    for key in ("call", "rejected"):
        if found.get(key) is not None:
            found[key] = call_record(found[key])
    return {"type": TYPES[type(event)], **found, "span": span}


def turn_record(turn: Turn) -> dict[str, Any]:
    """A whole turn."""
    return {
        "reasoning": turn.reasoning,
        "content": turn.content,
        "calls": [call_record(call) for call in turn.calls],
        "rejected": [call_record(call) for call in turn.rejected],
        "complete": turn.complete,
        "finish_reason": turn.finish_reason,
        "problems": [_problem_record(problem) for problem in turn.problems],
        "messages": [_message_record(message) for message in turn.messages],
    }


def call_record(call: ToolCall | RejectedCall) -> dict[str, Any]:
    """A call, or a rejected one (which has a ``reason``)."""
    record = {
        field.name: getattr(call, field.name)
        for field in fields(call)
        if field.name != "arguments_json"
    }
    record["errors"] = [{"path": each.path, "message": each.message} for each in call.errors]
    return record


def tool_records(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Tools as their declarations, which :class:`atem.ToolSet` takes."""
    return [_tool_record(tool) for tool in tools]


def _tool_record(tool: Tool) -> dict[str, Any]:
    record: dict[str, Any] = {"type": tool.kind, "name": tool.name, "description": tool.description}
    if tool.kind == "function":
        record["parameters"] = tool.parameters
    if tool.namespace is None:
        return record
    about = tool.namespace_description
    return {"type": "namespace", "name": tool.namespace, "description": about, "tools": [record]}


def _problem_record(problem: Problem) -> dict[str, Any]:
    span = [problem.start, problem.end]
    return {"code": problem.code, "message": problem.message, "span": span}


def _message_record(message: Message) -> dict[str, Any]:
    return {
        "recipient": message.recipient,
        "content": message.content,
        "calls": [call_record(call) for call in message.calls],
    }
