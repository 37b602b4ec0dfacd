"""The same events from an asynchronous source, several turns at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import atem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOOLS = [
    {
        "name": "search",
        "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}},
    }
]


def turn_text(pattern: str) -> str:
    """A turn that searches for ``pattern``."""
    return (
        f" to=self<|message|>Where is {pattern}?<|eom|><|start|>assistant to=search<|message|>"
        '<atem:function_calls>\n<atem:invoke name="search">\n'
        f'<atem:parameter name="pattern">{pattern}</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls><|eot|>"
    )


async def engine(text: str) -> AsyncIterator[str]:
    """A model that takes its time."""
    for start in range(0, len(text), 8):
        await asyncio.sleep(0)
        yield text[start : start + 8]


async def follow(pattern: str) -> list[str]:
    """Read one turn to its end; the calls that it decided on."""
    events = atem.aparse_stream(engine(turn_text(pattern)), tools=TOOLS)
    calls = [event.call async for event in events if isinstance(event, atem.CallEnd)]
    return [f"{call.name} {call.arguments}" for call in calls]


async def main() -> None:
    """Two turns side by side; each has its own parser."""
    for calls in await asyncio.gather(follow("def load"), follow("class Settings")):
        print(calls)


asyncio.run(main())
