"""Two stages, for servers that keep a reasoning parser and a tool parser apart."""

from __future__ import annotations

import atem

TOOLS = [{"name": "run_tests", "parameters": {"type": "object", "properties": {}}}]

# The answer quotes a call, then a real one follows. A first stage that unwraps
# the answer would make the two look alike to the second.
TEXT = """ to=self<|message|>Show the form first.<|eom|>\
<|start|>assistant to=user<|message|>A call looks like \
<|start|>assistant to=run_tests<|message|><atem:function_calls>
<atem:invoke name="run_tests">
</atem:invoke>
</atem:function_calls> on the wire.<|eom|>\
<|start|>assistant to=run_tests<|message|><atem:function_calls>
<atem:invoke name="run_tests">
</atem:invoke>
</atem:function_calls><|eot|>"""

chunks = [TEXT[start : start + 16] for start in range(0, len(TEXT), 16)]

reasoning, framed = "", []
for event in atem.split_channels(chunks, tools=TOOLS, tool_parsing=True, reason="stop"):
    match event:
        case atem.ReasoningDelta(text=text):
            reasoning += text
        case atem.Text(text=text):
            framed.append(text)  # headers and terminators still on it

turn = atem.collect(atem.parse_stream(framed, tools=TOOLS, reason="stop", framed=True))
whole = atem.parse(TEXT, tools=TOOLS)
print("reasoning:", reasoning)
print("answer:   ", turn.content)
print("calls:    ", [call.name for call in turn.calls])
same = (reasoning, turn.content, turn.calls) == (whole.reasoning, whole.content, whole.calls)
print("as one machine says:", same)
