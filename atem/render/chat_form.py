"""A conversation in the shape of chat completions, for servers that take nothing else.

Rules: what the shape has no place for is written in the nearest one: a rejected
call as a call under the name that the model wrote, with what could be read of
its arguments; the answer to it says that it didn't run.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .. import wire
from ..messages import TextPart, ToolCall
from ..tools.reply import NAMELESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..messages import Message, RejectedCall
    from ..tools import Tool, ToolSet


def chat_of(
    history: Iterable[Message], tools: ToolSet, strength: str | None = None
) -> dict[str, Any] | None:
    """``messages`` and ``tools``; None where a content is more than text."""
    history = list(history)
    if not all(_is_text(message) for message in history):
        return None
    found: dict[str, Any] = {"messages": list(_messages(history))}
    if len(tools):
        found["tools"] = [{"type": "function", "function": _declared(tool)} for tool in tools]
    if strength is not None:
        found["chat_template_kwargs"] = {"reasoning_strength": strength}
    return found


def _is_text(message: Message) -> bool:
    parts = (message.content,) if isinstance(message.content, str) else message.content
    return all(isinstance(part, str | TextPart) for part in parts)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(
        part.text if isinstance(part, TextPart) else str(part) for part in message.content
    )


def _declared(tool: Tool) -> dict[str, Any]:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.wire_name, "description": tool.description, "parameters": parameters}


def _messages(history: list[Message]) -> Iterator[dict[str, Any]]:
    waiting: list[str] = []  # the ids of calls without an answer so far
    made = 0
    for role, group in groupby(history, key=lambda message: message.role):
        if role == wire.ASSISTANT:
            turn = list(group)
            calls = [call for message in turn for call in message.calls]
            waiting = [call.id or f"rejected_{made + place}" for place, call in enumerate(calls)]
            made += len(calls)
            yield _assistant(turn, [_called(*each) for each in zip(waiting, calls, strict=True)])
        else:
            yield from (_other(message, waiting) for message in group)


def _other(message: Message, waiting: list[str]) -> dict[str, Any]:
    """A message that is no assistant's; an answer takes its call off ``waiting``."""
    record = {"role": message.role, "content": _text(message)}
    if message.role == "tool":
        # A call that was rejected may have no id; its answer stands where it stood.
        known = message.call_id in waiting or not waiting
        record["tool_call_id"] = (message.call_id or "") if known else waiting[0]
        if waiting:
            waiting.remove(record["tool_call_id"])
    return record


def _assistant(turn: list[Message], calls: list[dict[str, Any]]) -> dict[str, Any]:
    thoughts = [_text(message) for message in turn if message.recipient == wire.SELF]
    answers = [_text(message) for message in turn if message.recipient != wire.SELF]
    record: dict[str, Any] = {"role": wire.ASSISTANT, "content": "".join(answers) or None}
    if any(thoughts):
        record["reasoning_content"] = "\n".join(thoughts)
    return record | ({"tool_calls": calls} if calls else {})


def _called(call_id: str, call: ToolCall | RejectedCall) -> dict[str, Any]:
    if isinstance(call, ToolCall):
        function = {"name": call.wire_name, "arguments": call.arguments_json}
    else:
        arguments = json.dumps(call.arguments or {}, ensure_ascii=False)
        function = {"name": call.raw_name or NAMELESS, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
