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


def policy(call: atem.ToolCall) -> atem.Allow | atem.Ask | atem.Deny:
    """Only what is known to be harmless runs by itself."""
    allowed = call.arguments.get("path") in NOTES
    return atem.Allow() if allowed else atem.Deny("only files in this folder")


def calling(name: str) -> str:
    """A call to ``name`` as the model writes it."""
    return f""" to={name}<|message|><atem:function_calls>
<atem:invoke name="{name}">
<atem:parameter name="path">notes.txt</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""


def results(turn: atem.Turn) -> Iterator[atem.Message]:
    """One tool message for each call, and one for each that was rejected."""
    for call in turn.calls:
        tool, decision = TOOLS.get(call.name), policy(call)
        run = tool is not None and isinstance(decision, atem.Allow)
        output = tool.call(call.arguments) if tool and run else f"Not run: {decision}"
        yield atem.Message("tool", content=output, name=call.name, call_id=call.id)
    yield from map(TOOLS.feedback, turn.rejected)


# The model: it first calls a tool that does not exist, and is told what does.
SCRIPT = [calling("open_file"), calling("read_file"), " to=user<|message|>Ana.<|eot|>"]

conversation = [atem.Message("user", content="Whom did I want to ask?")]
for written in SCRIPT:
    prompt = atem.render(conversation, tools=TOOLS).text()
    print(f"--- a prompt of {len(prompt)} characters ends with:", prompt[-200:], sep="\n")
    turn = atem.parse(written, tools=TOOLS)
    conversation += [*turn.messages, *results(turn)]
print("---", turn.content, sep="\n")
