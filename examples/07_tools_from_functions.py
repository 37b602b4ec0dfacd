"""Tools from typed functions: the schema comes from the signature, the check from the schema."""

from __future__ import annotations

import json
from typing import Literal

import atem


@atem.tool
def depth(port: str, day: int = 1, unit: Literal["m", "ft"] = "m") -> str:
    """Depth of a harbour at low water.

    Args:
        port: name of the harbour
        day: days from now
        unit: unit of the answer
    """
    return f"{port}, day {day}: {4.1 if unit == 'm' else 13.5} {unit}"


def call_text(**values: str) -> str:
    """A call to ``depth`` as a model writes it."""
    parameters = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in values.items()
    )
    return (
        ' to=depth<|message|><atem:function_calls>\n<atem:invoke name="depth">\n'
        f"{parameters}</atem:invoke>\n</atem:function_calls><|eot|>"
    )


tools = atem.ToolSet([depth])
tools.check()  # would raise for a name that can't be called or a broken schema
for tool in tools:
    print(tool.wire_name, "-", tool.description.splitlines()[0])
    print(json.dumps(tool.parameters, indent=2))

good = atem.parse(call_text(port="Vigo", day="2", unit="ft"), tools=tools)
for call in good.calls:
    declared = tools.get(call.name)
    print(call.arguments, "->", declared.call(call.arguments) if declared else None)

# "tomorrow" is no integer. By default such a call is reported with what is wrong with it;
# validate="reject" turns it away, and feedback() tells the model why.
bad = atem.parse(call_text(port="Vigo", day="tomorrow"), tools=tools, validate="reject")
for rejected in bad.rejected:
    print(rejected.reason)
    print(tools.feedback(rejected).content)
