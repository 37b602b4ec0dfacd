"""Tools: declared by schema or by function, resolved, checked, run, allowed, answered."""

from __future__ import annotations

from typing import Any, assert_type

import atem


@atem.tool
def depth(port: str, day: int = 1) -> float:
    """Depth of a harbour at low water, in metres."""
    return len(port) * day / 2


@atem.tool(name="notes.add", description="Keep a note.")
def add_note(title: str, tags: list[str] | None = None) -> str:
    """A name that is no identifier."""
    return f"{title}: {tags or 'no tags'}"


# A decorated function is still the function that it was.
assert_type(depth("Vigo"), float)
assert_type(add_note("Rope", ["buy"]), str)

chat: dict[str, Any] = {"type": "function", "function": {"name": "ping", "parameters": {}}}
plain = atem.Tool("wipe", description="Dangerous.", parameters={"type": "object"})
tools = atem.ToolSet([depth, add_note, chat, plain, atem.Tool.from_function(depth, name="deep")])
tools.check()
assert_type(tools.names, tuple[str, ...])
assert_type(len(tools), int)
for tool in tools:
    assert_type(tool, atem.Tool)
    assert_type(tool.parameters, dict[str, Any] | None)
    assert_type(tool.wire_name, str)

found = tools.resolve("functions.ping", names="safe")
assert_type(found, atem.Tool | None)
assert found is not None
assert_type(found.name, str)

TEXT = """ to=depth<|message|><atem:function_calls>
<atem:invoke name="depth">
<atem:parameter name="port">Vigo</atem:parameter>
</atem:invoke>
<atem:invoke name="dpth">
</atem:invoke>
</atem:function_calls><|eot|>"""


def harmless(call: atem.ToolCall) -> atem.Allow | None:
    """An opinion: None leaves the call to the next policy."""
    return atem.Allow() if call.name == "depth" else None


rules = atem.by_name(
    {"notes.*": atem.Ask("Keep this note?"), "wipe": atem.Deny("never")}, default=None
)
policy: atem.Policy = atem.first_of(harmless, rules, atem.ask_all)
by_default: atem.Policy = atem.by_name({"depth": atem.Allow()})

# A table of rules may be kept in a variable, of one kind of decision or of several.
allowed = {"depth": atem.Allow()}
table: dict[str, atem.Decision] = {**allowed, "notes.*": atem.Ask(), "wipe": atem.Deny("never")}
opinion: atem.Opinion = atem.by_name(allowed, default=None)
strict: atem.Policy = atem.by_name(table, default=atem.Deny("not on the list"))
either: atem.Policy | None = atem.first_of(opinion, strict)


def run(call: atem.ToolCall) -> atem.Message:
    """The reply to a call."""
    assert_type(call.arguments, dict[str, Any])
    assert_type(call.arguments_json, str)
    assert_type(call.errors, tuple[atem.Violation, ...])
    assert_type(call.span, tuple[int, int])
    declared = tools.get(f"{call.namespace}.{call.name}" if call.namespace else call.name)
    match policy(call):
        case atem.Allow() if declared is not None:
            try:
                output = str(declared.call(call.arguments))
            except atem.InvalidArguments as error:
                output = "\n".join(str(violation) for violation in error.violations)
        case atem.Deny(reason=reason):
            output = f"Not allowed: {reason}"
        case atem.Ask(question=question):
            output = f"Not allowed by anyone yet: {question}"
        case atem.Allow():
            output = "There is nothing to run."
    return atem.Message("tool", output, name=call.name, call_id=call.id)


turn = atem.parse(TEXT, tools=tools, validate="reject")
replies = [run(call) for call in turn.calls] + [tools.feedback(each) for each in turn.rejected]
assert_type(replies, list[atem.Message])
assert [reply.content for reply in replies][:1] == ["2.0"]
assert either is not None
assert_type(either(turn.calls[0]), atem.Allow | atem.Ask | atem.Deny)
assert strict(turn.calls[0]) == atem.Allow()

for rejected in turn.rejected:
    assert_type(rejected.arguments, dict[str, Any] | None)
    assert_type(rejected.suggestions, tuple[str, ...])
    assert_type(rejected.id, str | None)
    match rejected.reason:
        case "unknown_tool":
            assert rejected.suggestions[0] == "depth"
        case "malformed" | "incomplete" | "invalid_arguments":
            raise AssertionError(rejected)

violations = atem.validate(plain, {})
assert_type(violations, tuple[atem.Violation, ...])

try:
    atem.parse(TEXT, tools=tools, unknown="raise")
except atem.UnknownTool as error:
    assert_type(error.rejected, atem.RejectedCall | None)
