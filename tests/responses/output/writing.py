"""What the tests of the output share: turns as a model writes them, and the way through the builder."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import atem
from atem.responses.answer import answer, new_builder
from atem.responses.blob import Blobs
from atem.responses.builder import ResponseBuilder
from atem.responses.request import from_request
from atem.responses.tools import ClientTools
from atem.testing.scripted import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Events = list[dict[str, Any]]

NEXT = "<|start|>assistant"
EOM, EOT = "<|eom|>", "<|eot|>"

A_NUMBER = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
FORMAT = {
    "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": A_NUMBER}}
}
READ = {
    "type": "function",
    "name": "read",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
        "additionalProperties": False,
    },
}
PATCH = {"type": "custom", "name": "patch", "description": "Change files."}
MAIL = {
    "type": "namespace",
    "name": "mail",
    "description": "Letters.",
    "tools": [{**READ, "name": "send"}, {"type": "custom", "name": "draft"}],
}
TOOLS = [READ, PATCH, MAIL]


def said(text: str, to: str = "user", end: str = EOM) -> str:
    return f" to={to}<|message|>{text}{end}"


def thought(text: str, end: str = EOM) -> str:
    return said(text, "self", end)


def invoke(name: str, **arguments: str) -> str:
    parameters = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n'
        for key, value in arguments.items()
    )
    return f'<atem:invoke name="{name}">\n{parameters}</atem:invoke>\n'


def called(*invokes: str, to: str = "read", end: str = EOT) -> str:
    return said(f"<atem:function_calls>\n{''.join(invokes)}</atem:function_calls>", to, end)


def turn(*messages: str) -> str:
    return NEXT.join(messages)


def counted() -> Callable[[str], str]:
    """Ids in order, so that a test can name them: ``rs_1``, ``msg_2``, ..."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


def builder(tools: Iterable[Any] = TOOLS, **options: Any) -> ResponseBuilder:
    options.setdefault("id", "resp_0")
    given = ClientTools.of(list(tools))
    return ResponseBuilder(
        {"model": "muse", "tools": given.echo},
        given,
        created_at=1000,
        **{"new_id": counted(), **options},
    )


def streamed(
    made: ResponseBuilder, tokens: str | Iterable[object], *, reason: Any = "stop"
) -> Events:
    """The whole stream of a turn that the parser reads from ``tokens``."""
    events = made.start()
    numbers = itertools.count(1)
    parsed = atem.parse_stream(
        [tokens] if isinstance(tokens, str) else tokens,
        reason=reason,
        tools=made.tools.toolset,
        arguments=made.arguments,
        new_id=lambda: f"call_{next(numbers)}",
    )
    for event in parsed:
        events += made.feed(event)
    return events + made.finish(1001, reason=None if reason == "stop" else "max_output_tokens")


def fed(made: ResponseBuilder, text: str) -> Events:
    """The events that ``text`` brings, without a beginning and an end."""
    parsed = atem.parse_stream([text], tools=made.tools.toolset, arguments=made.arguments)
    return [event for each in parsed for event in made.feed(each)]


def asked(
    turns: Any, body: dict[str, Any] | None = None, **options: Any
) -> tuple[Events, dict[str, Any], ScriptedEngine]:
    """A request answered by a scripted model: the events, the response, the engine."""
    ask = from_request({"model": "muse", "input": "hi", **(body or {})})
    engine = turns if hasattr(turns, "generate") else ScriptedEngine(turns)
    made = new_builder(ask, created_at=1000, blobs=Blobs(None, "muse"), new_id=counted())
    batches = answer(ask, engine, made, clock=lambda: 1001, **options)
    return [event for batch in batches for event in batch], made.response, engine


def kinds(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


def texts(response: dict[str, Any]) -> list[str]:
    """The text of each message."""
    return [i["content"][0]["text"] for i in response["output"] if i["type"] == "message"]
