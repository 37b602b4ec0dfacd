"""An agent in one loop: render, generate, parse, ask the policy, run, and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import atem

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES = {"notes.txt": "Buy rope. Ask Ana about the tide table."}


@atem.tool
def read_file(path: str) -> str:
    """Read the text of a file."""
    return NOTES[path]


TOOLS = atem.ToolSet([read_file])


def policy(call: atem.ToolCall) -> atem.Decision:
    """Only what is known to be harmless runs by itself."""
    harmless = call.name == "read_file" and call.arguments.get("path") in NOTES
    return atem.Allow() if harmless else atem.Deny("only the files in this folder")


def replies(turn: atem.Turn) -> Iterator[atem.Message]:
    """A result for each call, and for each rejected one what was wrong with it."""
    for call in turn.calls:
        decision, tool = policy(call), TOOLS.get(call.name)
        run = isinstance(decision, atem.Allow) and tool is not None
        output = tool.call(call.arguments) if tool and run else f"Not run: {decision}"
        yield atem.Message("tool", content=output, name=call.name, call_id=call.id)
    yield from map(TOOLS.feedback, turn.rejected)


CALL = """ to={0}<|message|><atem:function_calls>
<atem:invoke name="{0}">
<atem:parameter name="path">notes.txt</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""
# The model: it calls a tool that doesn't exist, is told what does, calls that, and answers.
SCRIPT = [CALL.format("open_file"), CALL.format("read_file"), " to=user<|message|>Ana.<|eot|>"]

conversation = [atem.Message("user", content="Whom did I want to ask?")]
for written in SCRIPT:
    prompt = atem.render(conversation, tools=TOOLS).text()
    print(f"--- a prompt of {len(prompt)} characters ends with:", prompt[-400:], sep="\n")
    turn = atem.parse(written, tools=TOOLS)
    conversation = [*conversation, *turn.messages, *replies(turn)]
print("---", turn.content, sep="\n")
