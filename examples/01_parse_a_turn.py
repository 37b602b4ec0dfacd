"""A whole turn at once: what the model wrote, and what an agent gets from it."""

from __future__ import annotations

import atem

# Declared as for a chat-completions request; flat Responses tools and typed functions work too.
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "The text of a file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "first_line": {"type": "integer"}},
                "required": ["path"],
            },
        },
    }
]

# The prompt ended with <|start|>assistant, so the first header comes without it.
TEXT = """ to=self<|message|>Line 88 is where it fails.<|eom|>\
<|start|>assistant to=user<|message|>Let me look at the loader.<|eom|>\
<|start|>assistant to=read_file<|message|><atem:function_calls>
<atem:invoke name="read_file">
<atem:parameter name="path">src/loader.py</atem:parameter>
<atem:parameter name="first_line">80</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""

turn = atem.parse(TEXT, tools=TOOLS)
print("reasoning:", turn.reasoning)
print("answer:   ", turn.content)
for call in turn.calls:
    print("call:     ", call.name, call.arguments)
print("finish:   ", turn.finish_reason)

# The same turn as the model server would cut it at a token limit. Say that it was cut:
# half a call is never a call.
cut = atem.parse(TEXT[:250], tools=TOOLS, reason="length")
print("cut:      ", len(cut.calls), "calls,", [rejected.reason for rejected in cut.rejected])
