"""Each form of tool_choice: what may be called, what has to be, and what is echoed."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses.response import ToolChoice
from pydantic import TypeAdapter

from atem.messages import ToolCall
from tests.responses.request.asking import ask, function, refused, system

TOOLS = [
    function("read"),
    {"type": "custom", "name": "patch"},
    {
        "type": "namespace",
        "name": "mail",
        "description": "",
        "tools": [function("send"), function("read")],
    },
    function("later", defer_loading=True),
    {"type": "tool_search", "execution": "client"},
    {"type": "web_search"},
]
ALL = {"read", "patch", "mail.send", "mail.read", "tool_search"}


def allowed(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


CASES: list[tuple[Any, set[str], bool]] = [
    (None, ALL, False),
    ("auto", ALL, False),
    ("none", set(), False),
    ("required", ALL, True),
    ({"type": "function", "name": "read"}, {"read"}, True),
    ({"type": "function", "function": {"name": "read"}}, {"read"}, True),
    ({"type": "function", "name": "send"}, {"mail.send"}, True),
    ({"type": "function", "name": "read", "namespace": "mail"}, {"mail.read"}, True),
    ({"type": "custom", "name": "patch"}, {"patch"}, True),
    ({"type": "tool_search"}, {"tool_search"}, True),
    (
        allowed("auto", {"type": "function", "name": "read"}, {"type": "custom", "name": "patch"}),
        {"read", "patch"},
        False,
    ),
    (allowed("required", {"type": "function", "name": "send"}), {"mail.send"}, True),
    (allowed("auto", {"type": "namespace", "name": "mail"}), {"mail.send", "mail.read"}, False),
    (allowed("auto", {"type": "web_search"}), set(), False),
    (allowed("auto"), set(), False),
]


@pytest.mark.parametrize(("choice", "callable_", "required"), CASES)
def test_what_may_be_called_and_whether_it_has_to_be(
    choice: Any, callable_: set[str], required: bool
) -> None:
    made = ask(tools=TOOLS, tool_choice=choice)
    assert {tool.tool.wire_name for tool in made.tools.callable(made.choice)} == callable_
    assert made.choice.required is required
    assert made.must == (frozenset({"call"}) if required else frozenset())


@pytest.mark.parametrize(("choice", "callable_", "required"), CASES)
def test_a_call_is_allowed_if_its_tool_is(choice: Any, callable_: set[str], required: bool) -> None:
    made = ask(tools=TOOLS, tool_choice=choice)
    for tool in made.tools.toolset:
        call = ToolCall(0, "c", tool.name, tool.namespace, tool.wire_name, None, {}, "{}")
        assert made.choice.allows(call) == (tool.wire_name in callable_)


@pytest.mark.parametrize("choice", [case[0] for case in CASES])
def test_the_prompt_is_the_same_whatever_is_chosen(choice: Any) -> None:
    assert system(ask(tools=TOOLS, tool_choice=choice)) == system(ask(tools=TOOLS))


@pytest.mark.parametrize(
    "choice", [case[0] for case in CASES if case[0] != {"type": "tool_search"}]
)
def test_the_echo_is_a_tool_choice_of_the_sdk(choice: Any) -> None:
    TypeAdapter(ToolChoice).validate_python(
        ask(tools=TOOLS, tool_choice=choice).echo["tool_choice"], strict=True
    )


@pytest.mark.parametrize(
    ("choice", "param"),
    [
        (5, "tool_choice"), ([], "tool_choice"), ("maybe", "tool_choice"), ({}, "tool_choice.type"), ({"type": 5}, "tool_choice.type"),
        ({"type": "function"}, "tool_choice.name"), ({"type": "function", "name": "gone"}, "tool_choice"),
        ({"type": "function", "name": "later"}, "tool_choice"), ({"type": "function", "name": "send", "namespace": "post"}, "tool_choice"),
        ({"type": "allowed_tools"}, "tool_choice.tools"), (allowed("never"), "tool_choice.mode"),
        (allowed("auto", 5), "tool_choice.tools[0]"), (allowed("auto", {"type": "function", "name": "gone"}), "tool_choice.tools[0]"),
        (allowed("required", {"type": "web_search"}), "tool_choice.tools"),
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_met_is_refused(choice: Any, param: str) -> None:
    error = refused(tools=TOOLS, tool_choice=choice)
    assert (error.status, error.param) == (400, param)


@pytest.mark.parametrize(
    "kind", ["web_search", "file_search", "mcp", "shell", "apply_patch", "code_interpreter"]
)
def test_forcing_a_hosted_tool_is_refused(kind: str) -> None:
    error = refused(tools=TOOLS, tool_choice={"type": kind})
    assert (error.code, error.param) == ("unsupported_parameter", "tool_choice")


@pytest.mark.parametrize(
    "tools", [None, [], [{"type": "web_search"}], [function("later", defer_loading=True)]]
)
def test_required_needs_a_tool_that_can_be_called(tools: Any) -> None:
    assert refused(tools=tools, tool_choice="required").param == "tool_choice"


def test_the_only_channel_is_that_of_the_only_tool_that_has_to_be_called() -> None:
    named = ask(tools=TOOLS, tool_choice={"type": "function", "name": "send"})
    assert named.channel() == "mail.send"
    assert named.prompt(channel=named.channel()).text().endswith(" to=mail.send<|message|>")
    assert ask(tools=TOOLS, tool_choice="required").channel() is None
    assert ask(tools=[function()], tool_choice="required").channel() == "read"
    assert ask(tools=[function()]).channel() is None
