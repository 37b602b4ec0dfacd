"""Every event matched, its fields at the types a user reads in the docs."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type

import atem

TEXT = """ to=self<|message|>Look it up.<|eom|><|start|>assistant to=find<|message|><atem:function_calls>
<atem:invoke name="find">
<atem:parameter name="word">tide</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>"""
TOOLS = [{"name": "find", "parameters": {"properties": {"word": {"type": "string"}}}}]


def describe(event: atem.Event) -> str:
    """One line for any event; a new kind of event would be a type error here."""
    match event:
        case atem.MessageStart(recipient=recipient):
            assert_type(recipient, str | None)
            return f"message to {recipient or 'the user'}"
        case atem.ReasoningDelta(text=text):
            return assert_type(text, str)
        case atem.ContentDelta(text):
            return assert_type(text, str)
        case atem.CallStart(index=index, id=call_id, name=name, namespace=namespace):
            assert_type(namespace, str | None)
            return f"{assert_type(index, int) + 1}. {name.upper()} {call_id.strip()}"
        case atem.ArgumentsDelta(index, json):
            return f"{assert_type(index, int)}: {assert_type(json, str)}"
        case atem.CallEnd(index=index, call=call):
            assert_type(call, atem.ToolCall)
            return f"{assert_type(index, int)}: run {call.name}"
        case atem.CallRejected(index=index, rejected=rejected):
            assert_type(rejected, atem.RejectedCall | None)
            what = "taken back" if rejected is None else f"{rejected.raw_name}: {rejected.reason}"
            return f"{assert_type(index, int | None)}: {what}"
        case atem.MessageEnd(terminator=terminator, tokens=tokens):
            assert_type(tokens, int | None)
            return terminator or "no terminator"
        case atem.Problem(code=code, message=message):
            return f"{code}: {message}"
        case atem.TurnEnd(finish_reason=reason, complete=complete):
            assert_type(complete, bool)
            return assert_type(reason, Literal["stop", "tool_calls", "length"])
        case _:
            assert_never(event)


def indices(events: list[atem.Event]) -> list[int]:
    """Attributes instead of patterns: ``index`` is the number, not the method of a tuple."""
    found: list[int] = []
    for event in events:
        if isinstance(event, atem.CallStart | atem.ArgumentsDelta | atem.CallEnd):
            assert_type(event.index, int)
            found.append(event.index)
        if isinstance(event, atem.CallRejected) and event.index is not None:
            assert_type(event.index, int)
            found.append(event.index)
        assert_type(event.start, int)
        assert_type(event.end, int)
    return found


EVENTS = list(atem.parse_stream(TEXT, tools=TOOLS))
assert_type(EVENTS, list[atem.Event])
LINES = [describe(event) for event in EVENTS]
assert "run find" in "".join(LINES)
assert set(indices(EVENTS)) == {0}
