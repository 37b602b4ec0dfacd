"""What the tests of the projections share: turns of a model, told by the real chain.

Rules: every event comes from the real parser and builder. ``replied`` goes the
whole way, with an engine that plays a script; ``built`` leaves the engine out,
for turns that are drawn.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import atem
from atem.responses.answer import answer, new_builder
from atem.responses.blob import Blobs
from atem.responses.builder import ResponseBuilder
from atem.responses.request import from_request
from atem.responses.tools import ClientTools
from atem.testing.scripted import ScriptedEngine

NEXT = "<|eom|><|start|>assistant"
THOUGHT = " to=self<|message|>Look it up."
SAID = " to=user<|message|>One moment."
DONE = " to=user<|message|>It is so.<|eot|>"

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
}
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
MESSAGES_TOOLS = [{"name": "weather", "input_schema": PARAMETERS}]

BLOBS = Blobs(None, "muse")


class Reply(NamedTuple):
    """The events of a response, the object that it came to, the stop string that ended it."""

    events: list[dict[str, Any]]
    response: dict[str, Any]
    stopped_by: str | None = None


def call(name: str = "weather", **arguments: Any) -> str:
    """A message with one call, as the model writes it, without its end."""
    values = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n'
        for key, value in arguments.items()
    )
    return (
        f" to={name}<|message|><atem:function_calls>\n"
        f'<atem:invoke name="{name}">\n{values}</atem:invoke>\n</atem:function_calls>'
    )


def turn(*messages: str, end: str = "<|eot|>") -> str:
    """Messages of one turn; an ``end`` of "" leaves it cut."""
    return NEXT.join(messages) + end


def replied(text: str, body: dict[str, Any], **options: Any) -> Reply:
    """``body`` (a create body) answered by a model that writes ``text``."""
    count = itertools.count(1)

    def new_id(prefix: str) -> str:
        return f"{prefix}_{next(count):02}"

    ask = from_request(body, new_id=new_id, blobs=BLOBS)
    builder = new_builder(ask, created_at=1000, blobs=BLOBS, new_id=new_id, **options)
    batches = answer(ask, ScriptedEngine([text]), builder, clock=lambda: 1001)
    events = [event for batch in batches for event in batch]
    return Reply(events, builder.response, builder.stopped_by)


def built(
    text: str, tools: list[dict[str, Any]], reason: str = "stop", *, arguments: str = "whole"
) -> Reply:
    """The turn ``text`` of a model that was offered ``tools``; "length" cuts it."""
    client = ClientTools.of(tools)
    builder = ResponseBuilder(
        {"model": "muse"}, client, created_at=1000, encrypted=BLOBS, arguments=arguments
    )
    events = builder.start()
    parsed = atem.parse_stream([text], tools=client.toolset, reason=reason, arguments=arguments)
    for event in parsed:
        events += builder.feed(event)
    builder.usage.input, builder.usage.cached, builder.usage.output = 20, 5, 9
    events += builder.finish(1001, reason="max_output_tokens" if reason == "length" else None)
    return Reply(events, builder.response)


def items(response: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    return [item for item in response["output"] if item["type"] in kinds]
