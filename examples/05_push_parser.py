"""The parser as an object: you push what arrives, whenever it arrives, and it says when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import atem

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = [{"name": "run_tests", "parameters": {"type": "object", "properties": {}}}]

TEXT = """ to=user<|message|>Running the tests — all of them.<|eom|>\
<|start|>assistant to=run_tests<|message|><atem:function_calls>
<atem:invoke name="run_tests">
</atem:invoke>
</atem:function_calls><|eot|><|start|>user<|message|>and the model talks on and on"""


def socket() -> Iterator[bytes]:
    """Bytes as a network delivers them: three at a time, characters cut in half."""
    raw = TEXT.encode()
    return (raw[start : start + 3] for start in range(0, len(raw), 3))


parser = atem.Parser(tools=TOOLS)
events: list[atem.Event] = []
read = 0
for chunk in socket():
    read += len(chunk)
    events += parser.feed(chunk)
    if parser.done:  # the turn is over: tell the engine to stop, whatever still comes
        break
events += parser.close("stop")

turn = atem.collect(events)
print(turn.content)
print([call.name for call in turn.calls], turn.finish_reason)
print(f"stopped after {read} of {len(TEXT.encode())} bytes")
