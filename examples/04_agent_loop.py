"""An agent in one loop: render, generate, parse, ask the policy, run, and again."""

from __future__ import annotations

import json

import atem

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


def run(call: atem.ToolCall) -> str:
    """The result as text, or why there is none: the model is told either way."""
    decision, tool = policy(call), TOOLS.get(call.wire_name)
    if tool is None or not isinstance(decision, atem.Allow):
        return f"Not run: {decision}"
    try:
        result = tool.call(call.arguments)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the loop goes on
        return f"{type(error).__name__}: {error}"
    return result if isinstance(result, str) else json.dumps(result)


def reply(call: atem.ToolCall) -> atem.Message:
    """The message that answers a call; TOOLS.feedback is the same for a rejected one."""
    return atem.Message("tool", content=run(call), name=call.wire_name, call_id=call.id)


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
    turn = atem.parse(written, tools=TOOLS, validate="reject", reason="stop")
    conversation += [*turn.messages, *map(reply, turn.calls), *map(TOOLS.feedback, turn.rejected)]
print("---", turn.content, sep="\n")
