"""Events as the tokens arrive, and the one event that lets a call run."""

from __future__ import annotations

import atem

TOOLS = [
    {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        },
    }
]

TEXT = """ to=self<|message|>A short script will do.<|eom|>\
<|start|>assistant to=write_file<|message|><atem:function_calls>
<atem:invoke name="write_file">
<atem:parameter name="path">hello.sh</atem:parameter>
<atem:parameter name="content">#!/bin/sh
echo "hello, $1"
</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""


def show(event: atem.Event) -> None:
    """One line for each event that a screen cares about."""
    match event:
        case atem.ReasoningDelta(text=text):
            print(f"thinking     {text!r}")
        case atem.ContentDelta(text=text):
            print(f"answering    {text!r}")
        case atem.CallStart(name=name):
            print(f"provisional  {name} is being called")
        case atem.ArgumentsDelta(json=json):
            print(f"provisional  {json}")
        case atem.CallEnd(call=call):
            print(f"run          {call.name} {call.arguments}")
        case atem.CallRejected(rejected=None):
            print("taken back   another reading of the same text follows")
        case atem.CallRejected(rejected=atem.RejectedCall() as rejected):
            print(f"never run    {rejected.raw_name or '?'}: {rejected.reason}")
        case atem.TurnEnd(finish_reason=reason):
            print(f"end          {reason}")


def pieces(text: str, size: int) -> list[str]:
    """``text`` as a server might send it."""
    return [text[start : start + size] for start in range(0, len(text), size)]


for event in atem.parse_stream(pieces(TEXT, 12), tools=TOOLS):
    show(event)
print("-- the same, cut in the middle of the file --")
for event in atem.parse_stream(pieces(TEXT[:250], 12), tools=TOOLS, reason="length"):
    show(event)
