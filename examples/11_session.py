"""A session: the whole loop of an agent, with tools that stay in one folder.

The model is scripted here; put atem.load("nano"), a checkpoint or a server in its place.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import atem
from atem.agent import calculate, file_tools
from atem.session import Feedback, TaskEnd, ToolEnd
from atem.testing.scripted import ScriptedEngine

CALL = """ to={0}<|message|><atem:function_calls>
<atem:invoke name="{0}">
<atem:parameter name="path">{1}</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""
# It calls a tool that doesn't exist, mistypes a name, tries to get out, reads, and answers.
SCRIPT = [
    CALL.format("open_file", "notes.txt"),
    CALL.format("read_file", "notse.txt"),
    CALL.format("read_file", "../secret.txt"),
    CALL.format("read_file", "notes.txt"),
    " to=self<|message|>There it is.<|eom|><|start|>assistant to=user<|message|>Ana.<|eot|>",
]

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "notes.txt").write_text("Ask Ana.", encoding="utf-8")
    session = atem.Session(
        ScriptedEngine(SCRIPT),
        tools=[*file_tools(folder), calculate],
        policy=atem.allow_all,  # these tools can only read, and only in the folder
    )
    for event in session.send("Whom did I want to ask?"):
        match event:
            case atem.ContentDelta(text=text):
                print(text, end="")
            case ToolEnd(call=call, text=text):
                print(f"{call.name} {call.arguments_json} -> {text}")
            case Feedback(text=text):
                print(f"not run: {text}")
            case TaskEnd(reason=reason):
                print(f"\n({reason}, {len(session.history)} messages)")
