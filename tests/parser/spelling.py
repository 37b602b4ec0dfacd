"""Turns as a model spells them, and what comes out of them, in short forms for tests of single rules.

Rules: texts are built here, answers never: they are written where they are
expected, from wire_format and docs/parser.md. ``events`` and ``read`` check on the
way what holds for every stream: spans that tile the text, and the same turn
one character at a time.
"""

from __future__ import annotations

from typing import Any

import atem
from tests.parser.folding import joined, tiled
from tests.parser.strategies import STRING, tool

NUMBER = {"type": "integer"}
TOOLS = [
    tool("ping"),
    tool("save", path=STRING, body=STRING),
    tool("count", n=NUMBER, body=STRING),
    tool("mail.send", body=STRING),
    tool("calendar.list"),
]
START, MESSAGE, EOM, EOT, END = (
    "<|start|>",
    "<|message|>",
    "<|eom|>",
    "<|eot|>",
    "<|end_of_text|>",
)
NEXT = "<|eom|><|start|>assistant"


def parameter(key: str, value: str) -> str:
    return f'<atem:parameter name="{key}">{value}</atem:parameter>'


def invoke(name: str, **values: str) -> str:
    parameters = "".join(f"{parameter(key, value)}\n" for key, value in values.items())
    return f'<atem:invoke name="{name}">\n{parameters}</atem:invoke>'


def block(*invokes: str) -> str:
    return "\n".join(["<atem:function_calls>", *invokes, "</atem:function_calls>"])


def to(recipient: str, body: str) -> str:
    """A message without its terminator, as the first of a turn."""
    return f" to={recipient}<|message|>{body}"


def call(name: str, **values: str) -> str:
    """A canonical call, without its terminator."""
    return to(name, block(invoke(name, **values)))


ANSWER = to("user", "Done.")
PING = block(invoke("ping"))

HALF = to("save", '<atem:invoke name="save"><atem:parameter name="body">half')
"""A call that is left in the middle of a value."""

REPEATED = '<atem:invoke name="save">{}{}{}</atem:invoke>'.format(
    parameter("body", "1"), parameter("path", "p"), parameter("body", "2")
)
"""A call that names a parameter twice."""


def turn(*messages: str, end: str = EOT) -> str:
    """Messages in a row, with boundaries between them."""
    return NEXT.join(messages) + end


def events(text: str, *, tools: Any = TOOLS, **options: Any) -> list[Any]:
    """The events of a text that is fed whole."""
    return tiled(atem.parse_stream([text], tools=tools, **options), len(text))


def read(text: str, *, tools: Any = TOOLS, **options: Any) -> atem.Turn:
    """The turn of a text, which must be the same when it is fed one character at a time."""
    whole = atem.collect(events(text, tools=tools, **options))
    pieces = atem.parse_stream(text, tools=tools, **options)
    assert atem.collect(tiled(pieces, len(text))) == whole
    return whole


def calls(turn: atem.Turn) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in turn.calls]


def verdicts(turn: atem.Turn) -> list[str]:
    return [rejected.reason for rejected in turn.rejected]


def codes(turn: atem.Turn) -> list[str]:
    return [problem.code for problem in turn.problems]


def argument(value: str, declared: Any, **definitions: Any) -> Any:
    """What the text ``value`` is to a parameter declared so."""
    schema = {"type": "object", "properties": {"x": declared}, **definitions}
    tools = [{"type": "function", "name": "t", "parameters": schema}]
    [one] = read(turn(call("t", x=value)), tools=tools).calls
    return one.arguments["x"]


def prompt(messages: Any = ({"role": "user", "content": "Hi."},), **options: Any) -> str:
    """The text of the prompt of some chat messages."""
    return atem.render(list(messages), **options).text()


def of_kind(events: list[Any], kind: Any) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def rows(events: list[Any]) -> list[tuple[Any, ...]]:
    """Events as short rows, adjacent deltas joined; ids and spans left out."""
    return [(type(event).__name__, *_index(event), *_detail(event)) for event in joined(events)]


def _index(event: Any) -> tuple[Any, ...]:
    return (event.index,) if hasattr(event, "json") or hasattr(event, "call") else ()


def _detail(event: Any) -> tuple[Any, ...]:
    match event:
        case atem.ReasoningDelta(text) | atem.ContentDelta(text) | atem.ArgumentsDelta(json=text):
            return (text,)
        case atem.MessageStart(recipient):
            return (recipient,)
        case atem.CallStart():
            return (event.index, event.name)
        case atem.CallEnd():
            return (event.call.name, event.call.arguments)
        case atem.CallRejected(index, rejected):
            return (index, rejected and rejected.reason)
        case atem.MessageEnd(terminator):
            return (terminator,)
        case atem.Problem(code):
            return (code,)
        case _:
            return (event.finish_reason, event.complete)
