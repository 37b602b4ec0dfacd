"""Every form in which tools are declared elsewhere, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

import pytest
from openai import pydantic_function_tool
from openai.types.responses import FunctionTool
from pydantic import BaseModel, Field

from atem.errors import InvalidTool
from atem.tools import Tool, ToolSet, tool

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool("read", "Read a file.", SCHEMA)


class Read(BaseModel):
    """Read a file."""

    path: str = Field(description="where")


def read(path: str) -> str:
    """Read a file."""
    return path


FORMS = {
    "Tool": READ,
    "chat": {
        "type": "function",
        "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA},
    },
    "chat without a type": {
        "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA}
    },
    "responses": {
        "type": "function",
        "name": "read",
        "description": "Read a file.",
        "parameters": SCHEMA,
        "strict": True,
    },
    "flat without a type": {"name": "read", "description": "Read a file.", "parameters": SCHEMA},
    "openai object": FunctionTool(
        type="function", name="read", description="Read a file.", parameters=SCHEMA, strict=False
    ),
    "mcp dict": {
        "name": "read",
        "title": "Read",
        "description": "Read a file.",
        "inputSchema": SCHEMA,
    },
    "mcp object": SimpleNamespace(
        name="read", description="Read a file.", inputSchema=SCHEMA, annotations=None
    ),
    "mcp v2 object": SimpleNamespace(name="read", description="Read a file.", input_schema=SCHEMA),
    "anthropic": {"name": "read", "description": "Read a file.", "input_schema": SCHEMA},
    "anthropic typed": {
        "type": "custom",
        "name": "read",
        "description": "Read a file.",
        "input_schema": SCHEMA,
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_the_same_declaration_gives_the_same_tool(form):
    assert list(ToolSet.of([FORMS[form]])) == [READ]


def test_a_bare_typed_function_and_a_decorated_one_declare_the_same():
    (bare,) = ToolSet.of([read])
    (marked,) = ToolSet.of([tool(read)])
    assert bare == marked
    assert (bare.name, bare.description, bare.function) == ("read", "Read a file.", read)
    assert bare.parameters == {**SCHEMA, "additionalProperties": False}


def test_a_pydantic_model_class_declares_its_own_schema_as_the_openai_helper_sees_it():
    (found,) = ToolSet.of([Read])
    theirs = pydantic_function_tool(Read)["function"]
    assert (found.name, found.description) == (theirs["name"], "Read a file.")
    assert found.parameters["properties"] == theirs["parameters"]["properties"]
    assert found.parameters["required"] == theirs["parameters"]["required"]
    assert not {"title", "description"} & set(found.parameters)


@pytest.mark.parametrize("missing", [{}, {"description": None, "parameters": None}])
def test_a_missing_description_is_empty_and_missing_parameters_are_an_empty_schema(missing):
    for form in (
        {"type": "function", "name": "ping", **missing},
        {"type": "function", "function": {"name": "ping", **missing}},
    ):
        assert list(ToolSet.of([form])) == [Tool("ping", "", {})]


def test_a_namespace_gives_its_tools_two_names_and_keeps_its_description():
    members = [
        {"type": "function", "name": "post", "parameters": SCHEMA},
        {"type": "custom", "name": "note"},
    ]
    tools = ToolSet.of(
        [{"type": "namespace", "name": "ledger", "description": "The books.", "tools": members}]
    )
    assert tools.names == ("ledger.post", "ledger.note")
    assert [(found.name, found.namespace, found.kind) for found in tools] == [
        ("post", "ledger", "function"),
        ("note", "ledger", "custom"),
    ]
    assert tools.namespace_descriptions == {"ledger": "The books."}
    assert ToolSet(list(tools)).namespace_descriptions == {"ledger": "The books."}


def test_a_dotted_chat_name_stays_one_name():
    (found,) = ToolSet.of([{"type": "function", "function": {"name": "ledger.post"}}])
    assert (found.name, found.namespace, found.wire_name) == ("ledger.post", None, "ledger.post")


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
CUSTOM = [
    {"type": "custom", "name": "patch", "description": "Patch.", "format": GRAMMAR},
    {
        "type": "custom",
        "custom": {
            "name": "patch",
            "description": "Patch.",
            "format": {"type": "grammar", "grammar": GRAMMAR},
        },
    },
]


@pytest.mark.parametrize("form", CUSTOM)
def test_a_custom_tool_takes_one_string_and_tells_the_model_its_grammar(form):
    (found,) = ToolSet.of([form])
    assert found.kind == "custom"
    assert found.parameters["properties"] == {"input": {"type": "string"}}
    assert found.parameters["required"] == ["input"]
    assert found.description.startswith("Patch.")
    assert "lark" in found.description
    assert "start: WORD" in found.description


def test_a_custom_tool_without_a_grammar_is_described_as_given():
    (found,) = ToolSet.of(
        [{"type": "custom", "name": "say", "description": "Say.", "format": {"type": "text"}}]
    )
    assert found.description == "Say."


def test_an_unsupported_type_is_refused_with_the_accepted_ones():
    with pytest.raises(
        InvalidTool, match=r"tools\[1\].*'web_search'.*'function', 'namespace' or 'custom'"
    ):
        ToolSet.of([READ, {"type": "web_search"}])


def test_unsupported_tools_are_collected_on_request_wherever_they_stand():
    search, shell = {"type": "web_search"}, {"type": "shell"}
    group = {"type": "namespace", "name": "n", "tools": [shell, {"type": "function", "name": "f"}]}
    tools = ToolSet.of([search, READ, group], skip_unsupported=True)
    assert tools.names == ("read", "n.f")
    assert tools.skipped == (search, shell)


WRONG = [
    (["read"], r"tools\[0\] is of the type 'str'"),
    ([READ, 5], r"tools\[1\] is of the type 'int'"),
    ([{}], r"tools\[0\] is a dict without a type"),
    ([{"name": "x", "params": {}}], r"'params'"),
    ([{"type": "function"}], r"tools\[0\]\.name must be a string, not NoneType"),
    ([{"type": "function", "function": None}], r"tools\[0\]\.function must be a dict"),
    ([{"type": "function", "name": 3}], r"name must be a string, not int"),
    ([{"type": "function", "name": "x", "description": 3}], r"description must be a string"),
    (
        [{"type": "function", "name": "x", "parameters": "{}"}],
        r"parameters must be a dict, not str",
    ),
    ([{"type": "namespace", "name": "x"}], r"needs a name and a list of tools"),
    ([{"type": "namespace", "name": "", "tools": []}], r"needs a name and a list of tools"),
    (
        [{"type": "namespace", "name": "x", "tools": [{"type": "namespace"}]}],
        r"tools\[0\]\.tools\[0\]",
    ),
    ([int], r"class 'int'"),
    ([len], r"not a Python function"),
    ([[READ]], r"tools\[0\] is of the type 'list'"),
    ({"type": "function", "name": "x"}, r"put a single tool in a list"),
    ("read", r"put a single tool in a list"),
    (READ, r"put a single tool in a list"),
    (read, r"put a single tool in a list"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_a_wrong_declaration_is_refused_with_what_was_found_and_where(wrong, message):
    with pytest.raises(InvalidTool, match=message):
        ToolSet.of(wrong)


class Opaque:
    """A class that pydantic knows nothing about."""


class Unschemable(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    handle: Annotated[Opaque, Field()]


def test_a_model_class_without_a_json_schema_is_refused():
    with pytest.raises(InvalidTool, match="'Unschemable' has no JSON Schema"):
        ToolSet.of([Unschemable])


def test_of_is_idempotent_and_takes_nothing_or_any_iterable():
    tools = ToolSet.of(form for form in [READ])
    assert ToolSet.of(tools) is tools
    assert tools.names == ("read",)
    assert len(ToolSet.of()) == len(ToolSet.of(None)) == len(ToolSet.of(())) == 0


@pytest.mark.parametrize("second", [READ, Tool("read", "another")])
def test_a_repeated_wire_name_is_refused(second):
    with pytest.raises(InvalidTool, match="two tools have the wire name 'read'"):
        ToolSet([READ, second])
    with pytest.raises(InvalidTool, match=r"two tools have the wire name 'a\.b'"):
        ToolSet([Tool("a.b"), Tool("b", namespace="a")])


def test_a_set_is_read_by_wire_name_and_in_order():
    tools = ToolSet([READ, Tool("post", namespace="ledger")])
    assert [found.wire_name for found in tools] == ["read", "ledger.post"]
    assert "ledger.post" in tools
    assert "post" not in tools
    assert tools.get("read") is READ
    assert tools.get("post") is None
    assert repr(tools) == "ToolSet(read, ledger.post)"


def test_tools_are_hashable_although_schemas_are_not():
    assert len({READ, Tool("read", "Read a file.", dict(SCHEMA))}) == 1
