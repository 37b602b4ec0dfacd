"""Each type of tool: offered, deferred or dropped; named on both sides; echoed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from atem.messages import ToolCall
from atem.responses.faults import ApiError
from atem.responses.tool_search import Searchable, search
from atem.responses.tools import ClientTools
from tests.responses.request.asking import ask, function, system

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files.", "format": GRAMMAR}
MAIL = {
    "type": "namespace",
    "name": "mail",
    "description": "Letters.",
    "tools": [function("send"), {"type": "custom", "name": "draft"}],
}
HOSTED = [
    "web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "computer",
    "computer_use_preview", "mcp", "local_shell", "shell", "apply_patch", "programmatic_tool_calling", "of_next_year",
]  # fmt: skip


def written(
    name: str, arguments: dict[str, Any] | None = None, namespace: str | None = None
) -> ToolCall:
    """A call as the parser gives it."""
    return ToolCall(0, "c1", name, namespace, name, None, arguments or {}, "{}")


def refused(*tools: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ClientTools.of(tools)
    return caught.value


def parsed(tools: ClientTools, name: str, parameters: str = "") -> ToolCall:
    """The call that the parser reads when the model writes ``name``."""
    text = f' to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n{parameters}</atem:invoke>\n</atem:function_calls><|eot|>'
    (found,) = atem.parse(text, tools=tools.toolset).calls
    return found


def test_a_function_is_offered() -> None:
    tools = ClientTools.of([function(description="Reads.", strict=None)])
    assert [(tool.name, tool.description) for tool in tools.toolset] == [("read", "Reads.")]
    assert tools.kind(written("read")) == "function"


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"properties": {}}])
def test_a_function_needs_no_parameters(parameters: Any) -> None:
    assert (
        "read"
        in ClientTools.of([{"type": "function", "name": "read", "parameters": parameters}]).toolset
    )


def test_chat_completions_nest_a_function_and_it_is_echoed_flat() -> None:
    tools = ClientTools.of([{"type": "function", "function": {"name": "read", "parameters": {}}}])
    assert tools.echo == [
        {"type": "function", "name": "read", "description": None, "parameters": {}, "strict": None}
    ]


def test_a_custom_tool_takes_one_text_and_its_grammar_is_told() -> None:
    tools = ClientTools.of([PATCH])
    call = parsed(tools, "apply_patch", '<atem:parameter name="input">*** Begin</atem:parameter>\n')
    assert tools.kind(call) == "custom"
    assert tools.custom_input(call) == "*** Begin"
    assert 'start: \\"x\\"' in system(ask(tools=[PATCH]))


def test_a_namespace_keeps_its_name_apart_from_its_members() -> None:
    tools = ClientTools.of([MAIL])
    assert tools.client_name(parsed(tools, "mail.send")) == ("mail", "send")
    assert (
        tools.kind(parsed(tools, "mail.draft", '<atem:parameter name="input">x</atem:parameter>\n'))
        == "custom"
    )
    assert '{"name": "mail", "description": "Letters."}' in system(ask(tools=[MAIL]))


def test_a_dot_in_a_name_is_no_namespace() -> None:
    tools = ClientTools.of([function("a.b"), function("a_c")])
    assert tools.client_name(parsed(tools, "a.b")) == (None, "a.b")


def test_the_same_dotted_name_twice_is_two_tools() -> None:
    space = {"type": "namespace", "name": "a", "description": "", "tools": [function("b")]}
    tools = ClientTools.of([function("a.b"), space])
    names = tools.toolset.names
    assert len(set(names)) == 2
    assert [tools.client_name(written(name)) for name in names] == [(None, "a.b"), ("a", "b")]


@given(st.lists(st.tuples(st.none() | st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=300)), max_size=6, unique=True))  # fmt: skip
def test_names_are_a_bijection_and_can_all_be_called(keys: list[tuple[str | None, str]]) -> None:
    raw = [function(name) if space is None else {"type": "namespace", "name": space, "description": "", "tools": [function(name)]} for space, name in keys]  # fmt: skip
    tools = ClientTools.of(raw)
    tools.toolset.check()
    found = {tools.client_name(written(name)) for name in tools.toolset.names}
    assert found == set(keys)
    assert {tools.written(*key) for key in keys} == {
        (tool.namespace, tool.name) for tool in tools.toolset
    }


def test_an_undeclared_call_keeps_what_the_model_wrote() -> None:
    tools = ClientTools.of([function()])
    call = written("gone", namespace="x")
    assert (tools.kind(call), tools.client_name(call), tools.target(call)) == (
        "function",
        ("x", "gone"),
        None,
    )


@pytest.mark.parametrize("kind", HOSTED)
def test_a_hosted_tool_is_dropped_named_and_echoed(kind: str) -> None:
    made = ask(tools=[function(), {"type": kind}])
    assert made.tools.dropped == (kind,)
    assert made.tools.toolset.names == ("read",)
    assert made.echo["tools"][1] == {"type": kind}


def test_a_dropped_type_can_stand_in_a_header() -> None:
    assert ClientTools.of([{"type": "a\r\nb: c" + "x" * 100}]).dropped == ("a__b__c" + "x" * 57,)


def test_hosted_members_of_a_namespace_are_dropped() -> None:
    space = {**MAIL, "tools": [function("send"), {"type": "mcp"}]}
    tools = ClientTools.of([space])
    assert (tools.toolset.names, tools.dropped) == (("mail.send",), ("mcp",))


def test_what_an_mcp_server_is_called_with_is_not_echoed() -> None:
    tool = {
        "type": "mcp",
        "server_label": "x",
        "authorization": "secret",
        "headers": {"x": "secret"},
    }
    assert ClientTools.of([tool]).echo == [{"type": "mcp", "server_label": "x"}]


def test_a_strict_function_wants_no_call_that_misses_its_schema() -> None:
    tools = ClientTools.of(
        [function("a", strict=True), function("b", strict=None), function("c", strict=False)]
    )
    assert [tools.strict(written(name)) for name in "abc"] == [True, False, False]


@pytest.mark.parametrize(("value", "given"), [("x", 1), (5, "x")])
def test_a_custom_input_is_always_text(value: Any, given: Any) -> None:
    call = ToolCall(0, "c", "p", None, "p", None, {"input": value}, '{"input": 5}')
    assert isinstance(ClientTools.of([]).custom_input(call), str)


# Deferred tools, search


def test_deferred_tools_are_not_shown_until_they_are_found() -> None:
    tools = ClientTools.of(
        [function(), function("mail_send", defer_loading=True), {"type": "tool_search"}]
    )
    assert tools.toolset.names == ("read", "tool_search")
    found = tools.search("send mail")
    assert [tool.name for tool in found] == ["mail_send"]
    assert tools.with_found(found).toolset.names == ("read", "mail_send", "tool_search")
    assert tools.with_found(found).echo == tools.echo


@pytest.mark.parametrize(("execution", "here"), [("client", False), ("server", True), (None, True)])
def test_who_answers_a_search(execution: Any, here: bool) -> None:
    tools = ClientTools.of([{"type": "tool_search", "execution": execution}])
    assert tools.server_search is here
    assert tools.kind(written("tool_search")) == "tool_search"


def test_a_search_has_the_parameters_that_the_client_gives_it() -> None:
    mine = {"type": "object", "properties": {"words": {"type": "string"}}}
    (tool,) = ClientTools.of(
        [{"type": "tool_search", "parameters": mine, "description": "D"}]
    ).toolset
    assert (tool.parameters, tool.description) == (mine, "D")


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    tools = [
        Searchable("a", "file file file"),
        Searchable("b", "file network"),
        Searchable("c", "file"),
    ]
    assert search(tools, "file network", 3)[0] == 1


def test_a_search_finds_words_inside_names() -> None:
    tools = [
        Searchable("mcp__docs.searchPages", ""),
        Searchable("delete_page", ""),
        Searchable("x", "y"),
    ]
    assert search(tools, "PAGES", 5) == [0]
    assert search(tools, "delete", 5) == [1]


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=8), st.text(max_size=40), st.integers(-1, 9))  # fmt: skip
def test_a_search_gives_at_most_what_was_asked_and_each_once(
    tools: list[tuple[str, str]], query: str, limit: int
) -> None:
    found = search([Searchable(*tool) for tool in tools], query, limit)
    assert len(found) == len(set(found)) <= max(0, limit)


# Refusals


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        (5, "tools[0]"), ({"type": "function"}, "tools[0].name"), ({"type": "function", "name": ""}, "tools[0].name"),
        ({"type": "function", "name": 5}, "tools[0].name"), ({"type": 5, "name": "x"}, "tools[0].type"),
        ({"type": ["x"]}, "tools[0].type"), ({"type": ""}, "tools[0].type"), ({"type": "namespace", "tools": []}, "tools[0].name"),
        ({"type": "namespace", "name": "x"}, "tools[0].tools"), ({"type": "namespace", "name": "x", "tools": [MAIL]}, "tools[0].tools[0]"),
        ({"type": "namespace", "name": "x", "tools": [{"type": ["y"]}]}, "tools[0].tools[0].type"),
        ({"type": "namespace", "name": "x", "tools": [{"type": "function"}]}, "tools[0].tools[0].name"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_refused_with_its_place(tool: Any, param: str) -> None:
    assert (refused(tool).status, refused(tool).param) == (400, param)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"}, {"type": "nonsense"}, {"properties": 5}, {"properties": {"<": {}}}, {"properties": {"a": {"pattern": "("}}},
        {"$ref": "https://host/schema"}, {"properties": {"a": {"$ref": "#/$defs/gone"}}},
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_with_its_tool(schema: Any) -> None:
    error = refused(function(parameters=schema))
    assert (error.status, error.code, error.param) == (
        400,
        "invalid_function_parameters",
        "tools[0].parameters",
    )
    assert "read" in error.message


@pytest.mark.parametrize("fields", [{"parameters": "x"}, {"parameters": []}, {"description": 5}])
def test_a_field_of_another_type_is_refused(fields: dict[str, Any]) -> None:
    assert refused(function(**fields)).status == 400


def test_more_than_512_tools_are_refused() -> None:
    many = [{"type": "function", "name": f"t{n}"} for n in range(512)]
    assert len(ClientTools.of(many)) == 512
    assert "512" in refused(*many, function()).message


def test_schemas_are_limited_before_they_cost() -> None:
    assert (
        "characters"
        in refused(function(parameters={"type": "object", "description": "x" * (1 << 20)})).message
    )


def test_a_tool_declared_twice_is_the_later_one_and_noted() -> None:
    tools = ClientTools.of([function(description="old"), function(description="new")])
    assert [tool.description for tool in tools.toolset] == ["new"]
    assert tools.notes
    assert not ClientTools.of([function(), function()]).notes
