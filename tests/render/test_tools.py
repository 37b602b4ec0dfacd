"""Tools in the system message."""

from __future__ import annotations

from typing import Any

import pytest

from atem.errors import InvalidTool, RenderError
from atem.messages import Message
from atem.render import render
from atem.tools import Tool

USER = [Message("user", "Hi")]


def recipients_line(tools: list[Any], **options: Any) -> str:
    text = render(USER, tools=tools, **options).text()
    return text.partition("# Valid recipients: ")[2].partition(".<|eot|>")[0]


TOOLS = [Tool("read"), Tool("send", namespace="mail"), Tool("mail.list"), Tool("write")]


def test_the_template_s_line_names_every_first_segment() -> None:
    assert recipients_line(TOOLS) == '"self", "read.*", "mail.*", "write.*", "user"'


def test_the_exact_line_names_undotted_tools_themselves() -> None:
    exact = recipients_line(TOOLS, recipients="exact")
    assert exact == '"self", "read", "mail.*", "write", "user"'


def test_a_bare_tool_beside_a_namespace_of_its_name_is_named_as_both() -> None:
    tools = [Tool("mail"), Tool("mail.send")]
    assert recipients_line(tools, recipients="exact") == '"self", "mail", "mail.*", "user"'


@pytest.mark.parametrize(
    "fields", [{}, {"description": None, "parameters": None}], ids=["missing", "null"]
)
def test_a_tool_without_description_and_parameters_gets_empty_ones(fields: dict[str, Any]) -> None:
    text = render(USER, tools=[{"type": "function", "function": {"name": "read", **fields}}]).text()
    assert '\n{"name": "read", "description": "", "parameters": {}}\n' in text


def test_namespace_descriptions_come_from_the_tools_and_the_option_wins() -> None:
    tools = [Tool("send", namespace="mail", namespace_description="Post")]
    assert '{"name": "mail", "description": "Post"}' in render(USER, tools=tools).text()
    given = {"mail": "Letters"}
    text = render(USER, tools=tools, tool_namespace_descriptions=given).text()
    assert '{"name": "mail", "description": "Letters"}' in text


def test_a_schema_is_json_with_non_ascii_kept() -> None:
    schema = {"type": "object", "properties": {"größe": {"type": "integer"}}}
    text = render(USER, tools=[Tool("read", "", schema)]).text()
    assert '"parameters": {"type": "object", "properties": {"größe": {"type": "integer"}}}' in text


@pytest.mark.parametrize("name", ["a b", 'a"b', "self", ""])
def test_a_tool_that_can_t_be_called_is_not_advertised(name: str) -> None:
    with pytest.raises(InvalidTool):
        render(USER, tools=[Tool(name)])


def test_a_schema_that_is_no_json_is_refused() -> None:
    schema = {"type": "object", "properties": {"a": {"default": float("nan")}}}
    with pytest.raises((RenderError, InvalidTool)):
        render(USER, tools=[Tool("read", "", schema)])


def test_every_system_message_repeats_tools_and_recipients() -> None:
    messages = [Message("system", "a"), Message("user", "b"), Message("developer", "c")]
    text = render(messages, tools=[Tool("read")]).text()
    assert text.count("// Function schemas") == 2
    assert text.count("# Valid recipients") == 2
