"""Bodies that the SDK sends, and its own objects sent back; its types are the oracle of what is stored."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import (
    ResponseCustomToolCall,
    ResponseFunctionToolCall,
    ResponseItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseToolSearchCall,
)
from openai.types.responses import response_reasoning_item as reasoning
from pydantic import BaseModel, TypeAdapter

from atem.responses.request import Ask, from_request
from tests.responses.request.asking import ask, call, function, output, talk, user

EXEC = {"type": "function", "name": "exec_command", "description": "", "strict": False, "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}}  # fmt: skip
AGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Agents.",
    "tools": [function("spawn", strict=False)],
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
}


class Answer(BaseModel):
    text: str
    sources: list[str]


class read_file(BaseModel):  # noqa: N801 - the SDK takes the function's name from it
    """Read a file."""

    path: str


def sent(**body: Any) -> dict[str, Any]:
    """The JSON that the SDK sends for a create with ``body``."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        return httpx2.Response(400, json={"error": {"message": "seen"}})

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = openai.OpenAI(api_key="none", base_url="http://test", http_client=http)
        with pytest.raises(openai.BadRequestError):
            client.responses.parse(model="muse", **body)
    return bodies[0]


def taken(body: dict[str, Any], **options: Any) -> Ask:
    made = from_request(body, **options)
    made.prompt()
    return made


def test_a_schema_and_tools_of_the_sdk_are_taken_together() -> None:
    body = sent(
        input="x",
        text_format=Answer,
        tools=[openai.pydantic_function_tool(read_file)["function"] | {"type": "function"}],
    )
    made = taken(body)
    assert made.must == {"format"}
    assert made.tools.toolset.names == ("read_file",)
    assert made.format.faults('{"text": "x", "sources": []}') == []


def test_the_tool_of_chat_completions_is_taken() -> None:
    assert taken(sent(input="x", tools=[openai.pydantic_function_tool(read_file)])).tools.toolset.names == ("read_file",)  # fmt: skip


OUTPUTS: list[BaseModel] = [
    ResponseReasoningItem(id="rs_1", type="reasoning", summary=[reasoning.Summary(text="Think.", type="summary_text")]),
    ResponseReasoningItem(id="rs_2", type="reasoning", summary=[], content=[reasoning.Content(text="Think.", type="reasoning_text")], encrypted_content="x"),
    ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", phase="commentary", content=[ResponseOutputText(type="output_text", text="Say.", annotations=[])]),
    ResponseFunctionToolCall(type="function_call", id="fc_1", call_id="c1", name="read", arguments="{}", status="completed", namespace="mail"),
    ResponseCustomToolCall(type="custom_tool_call", id="ctc_1", call_id="c2", name="patch", input="x"),
    ResponseToolSearchCall(type="tool_search_call", id="tsc_1", call_id="c3", arguments={"query": "x"}, execution="client", status="completed"),
]  # fmt: skip


@pytest.mark.parametrize("exclude", ["exclude_none", "exclude_unset", "round_trip"])
def test_output_items_sent_back_are_read(exclude: str) -> None:
    items = [item.model_dump(mode="json", **{exclude: True}) for item in OUTPUTS]
    answers = [
        output(),
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
        {"type": "tool_search_output", "call_id": "c3", "tools": []},
    ]
    text = talk(taken(sent(input=[user(), *items, *answers])))
    for said in ("Think.", "Say.", "mail.read", "patch", "tool_search"):
        assert said in text


@pytest.mark.parametrize("without", ["id", "status"])
def test_items_sent_back_without_ids_or_statuses_are_read(without: str) -> None:
    items = [
        {k: v for k, v in item.model_dump(mode="json").items() if k != without} for item in OUTPUTS
    ]
    made = taken({"model": "m", "input": [user(), *items]})
    assert len({item["id"] for item in made.items}) == len(items) + 1


STORED = [
    user(),
    {"role": "system", "content": [{"type": "input_text", "text": "s"}]},
    {"role": "developer", "content": "d"},
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": [{"type": "input_text", "text": "a"}], "phase": "final_answer"},
    {"type": "reasoning", "summary": []},
    call(),
    output(),
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "x"},
]  # fmt: skip


@pytest.mark.parametrize("item", STORED, ids=lambda item: item.get("type") or item["role"])
def test_what_is_stored_is_an_item_of_the_sdk(item: dict[str, Any]) -> None:
    before = (
        [call(), {**call(call_id="c2"), "type": "custom_tool_call"}] if "output" in item else []
    )
    stored = ask([*before, item]).items[-1]
    TypeAdapter(ResponseItem).validate_json(json.dumps(stored), strict=True)


def codex(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A body with the keys that Codex sends."""
    return {
        "model": "muse", "stream": True, "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Permissions."}]},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Skills."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where am I?"}]},
            *items,
        ],
        "tools": [EXEC, AGENTS, PATCH, {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}, {"type": "web_search", "external_web_access": False}],
        "tool_choice": "auto", "parallel_tool_calls": False, "reasoning": {"summary": "auto"}, "store": False,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0190", "client_metadata": {"x": "y"}, **fields,
    }  # fmt: skip


def test_what_codex_sends_is_taken() -> None:
    made = taken(codex())
    assert made.tools.toolset.names == (
        "exec_command",
        "multi_agent_v1.spawn",
        "apply_patch",
        "tool_search",
    )
    assert made.tools.dropped == ("web_search",)
    assert (made.stream, made.store, made.summary, made.encrypted, made.parallel) == (
        True,
        False,
        True,
        True,
        False,
    )
    assert made.notes == ()
    assert made.prompt().text().count("<|start|>system") == 1


def test_what_codex_sends_next_begins_with_the_same_prompt() -> None:
    first, items = (
        taken(codex()),
        [call("exec_command", arguments='{"cmd": "pwd"}'), output("/home")],
    )
    second = taken(codex(*items)).prompt().text()
    assert second.startswith(first.prompt().text())


def test_the_lite_request_of_codex_has_its_tools_in_an_item() -> None:
    body = codex()
    body["input"].insert(
        0, {"type": "additional_tools", "role": "developer", "tools": body.pop("tools")}
    )
    assert taken(body).tools.toolset.names == taken(codex()).tools.toolset.names


def test_a_websocket_frame_is_a_body() -> None:
    made = taken({"type": "response.create", "generate": False, **codex()})
    assert made.prewarm
    assert made.notes == ()


def test_results_of_mcp_tools_are_arrays() -> None:
    space = {"type": "namespace", "name": "mcp__docs", "description": "", "tools": [function("find", defer_loading=True, strict=False)]}  # fmt: skip
    items = [
        {"type": "tool_search_call", "call_id": "s", "arguments": {"query": "docs"}, "execution": "client", "status": "completed"},
        {"type": "tool_search_output", "call_id": "s", "tools": [space], "execution": "client", "status": "completed"},
        call("find", "c1", namespace="mcp__docs"),
        output([{"type": "input_text", "text": "Found."}]),
    ]  # fmt: skip
    made = taken(codex(*items))
    assert "mcp__docs.find" in made.tools.toolset
    assert '<tool_output name="mcp__docs.find">\nFound.\n</tool_output>' in made.prompt().text()
