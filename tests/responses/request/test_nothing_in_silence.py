"""Every field of the three APIs: honoured, echoed, noted or refused, and none ignored in silence.

What becomes of a field is not read off a table but seen: the request with it is
compared with the request without it.
"""

from __future__ import annotations

import typing
from dataclasses import fields
from typing import Any

import pytest
from anthropic.types.beta import message_create_params as beta_messages
from openai.types.chat import completion_create_params as chats
from openai.types.responses import response_create_params as responses

from atem.responses.anthropic import from_messages
from atem.responses.ask import Ask
from atem.responses.chat import from_chat
from atem.responses.faults import ApiError
from atem.responses.request import from_request
from tests.responses.request.asking import BLOBS, function

HI = [{"role": "user", "content": "hi"}]
NESTED = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
FLAT = {"name": "read", "input_schema": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
FORMAT = {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}

RESPONSES: dict[str, list[tuple[Any, str]]] = {
    "model": [("other", "echoed")],
    "input": [("ho", "honoured")],
    "instructions": [("Be brief.", "honoured"), ("Be brief.", "echoed")],
    "previous_response_id": [("resp_1", "honoured"), ("resp_1", "echoed")],
    "conversation": [("conv_1", "honoured"), ("conv_1", "echoed")],
    "max_output_tokens": [(5, "honoured"), (5, "echoed")],
    "max_tool_calls": [(3, "echoed")],
    "temperature": [(0.5, "honoured"), (0.5, "echoed")],
    "top_p": [(0.5, "honoured"), (0.5, "echoed")],
    "top_logprobs": [(2, "honoured"), (2, "echoed")],
    "presence_penalty": [(1, "honoured"), (1, "echoed")],
    "frequency_penalty": [(1, "honoured"), (1, "echoed")],
    "stop": [(["x"], "honoured")],
    "seed": [(5, "honoured")],
    "top_k": [(5, "honoured")],
    "min_p": [(0.5, "honoured")],
    "repetition_penalty": [(1.5, "honoured")],
    "logit_bias": [({"5": 1}, "noted")],
    "tools": [([function()], "honoured"), ([{"type": "web_search"}], "dropped")],
    "tool_choice": [("none", "honoured"), ("none", "echoed"), ({"type": "web_search"}, "refused")],
    "parallel_tool_calls": [(False, "honoured"), (False, "echoed")],
    "text": [({"format": FORMAT}, "honoured"), ({"verbosity": "low"}, "echoed")],
    "reasoning": [
        ({"effort": "low"}, "honoured"), ({"summary": "auto"}, "honoured"), ({"generate_summary": "auto"}, "honoured"),
        ({"context": "all_turns"}, "echoed"), ({"mode": "pro"}, "noted"), ({"effort": "odd"}, "noted"),
    ],
    "include": [(["reasoning.encrypted_content"], "honoured"), (["message.output_text.logprobs"], "honoured"), (["web_search_call.results"], "noted")],
    "store": [(False, "honoured"), (False, "echoed")],
    "metadata": [({"a": "b"}, "echoed")],
    "background": [(True, "honoured"), (True, "echoed")],
    "stream": [(True, "honoured")],
    "stream_options": [({"include_obfuscation": True}, "noted"), ({"include_usage": True}, "noted")],
    "truncation": [("auto", "honoured"), ("auto", "echoed")],
    "generate": [(False, "honoured")],
    "prompt": [({"id": "p"}, "refused")],
    "prompt_cache_key": [("k", "echoed")],
    "prompt_cache_options": [({"prewarm": True}, "honoured"), ({"mode": "explicit"}, "noted")],
    "prompt_cache_retention": [("24h", "noted")],
    "service_tier": [("flex", "noted")],
    "user": [("u", "echoed")],
    "safety_identifier": [("s", "echoed")],
    "context_management": [([{"type": "compaction"}], "noted")],
    "moderation": [({"model": "m"}, "noted")],
    "access_programs": [(["x"], "noted")],
    "image": [({"x": 1}, "noted")],
    "background_options": [({"x": 1}, "noted")],
    "something_new": [(1, "noted")],
}  # fmt: skip

CHAT: dict[str, list[tuple[Any, str]]] = {
    "model": [("other", "echoed")],
    "messages": [([{"role": "user", "content": "ho"}], "honoured")],
    "max_tokens": [(5, "honoured")],
    "max_completion_tokens": [(5, "honoured")],
    "temperature": [(0.5, "honoured")],
    "top_p": [(0.5, "honoured")],
    "presence_penalty": [(1, "honoured")],
    "frequency_penalty": [(1, "honoured")],
    "stop": [("x", "honoured")],
    "seed": [(5, "honoured")],
    "logprobs": [(True, "honoured")],
    "top_logprobs": [(2, "refused")],
    "logit_bias": [({"5": 1}, "noted")],
    "n": [(2, "refused")],
    "tools": [([NESTED], "honoured")],
    "tool_choice": [("none", "honoured")],
    "parallel_tool_calls": [(False, "honoured")],
    "functions": [([{"name": "f"}], "refused")],
    "function_call": [("auto", "refused")],
    "response_format": [({"type": "json_object"}, "honoured")],
    "verbosity": [("low", "echoed")],
    "reasoning_effort": [("low", "honoured")],
    "stream": [(True, "honoured")],
    "modalities": [(["text", "audio"], "refused")],
    "audio": [({"voice": "x"}, "refused")],
    "prediction": [({"type": "content"}, "noted")],
    "web_search_options": [({}, "noted")],
    "store": [(True, "noted")],
    "metadata": [({"a": "b"}, "echoed")],
    "user": [("u", "echoed")],
    "safety_identifier": [("s", "echoed")],
    "service_tier": [("flex", "noted")],
    "prompt_cache_key": [("k", "echoed")],
    "prompt_cache_options": [({"mode": "explicit"}, "noted")],
    "prompt_cache_retention": [("24h", "noted")],
    "moderation": [({"model": "m"}, "noted")],
    "stream_options": [({"include_obfuscation": True}, "noted"), ({"odd": 1}, "noted")],
    "something_new": [(1, "noted")],
}

MESSAGES: dict[str, list[tuple[Any, str]]] = {
    "model": [("other", "echoed")],
    "messages": [([{"role": "user", "content": "ho"}], "honoured")],
    "max_tokens": [(5, "honoured")],
    "system": [("Be brief.", "honoured")],
    "temperature": [(0.5, "honoured")],
    "top_p": [(0.5, "honoured")],
    "top_k": [(5, "honoured")],
    "stop_sequences": [(["x"], "honoured")],
    "stream": [(True, "honoured")],
    "tools": [([FLAT], "honoured"), ([{"type": "web_search_20250305", "name": "w"}], "dropped")],
    "tool_choice": [({"type": "none"}, "honoured"), ({"type": "auto", "disable_parallel_tool_use": True}, "honoured")],
    "thinking": [
        ({"type": "disabled"}, "honoured"), ({"type": "enabled", "budget_tokens": 100}, "honoured"),
        ({"type": "enabled", "budget_tokens": 100}, "noted"), ({"type": "between_tools"}, "noted"),
        ({"type": "adaptive", "odd": 1}, "noted"),
    ],
    "output_config": [
        ({"effort": "low"}, "honoured"), ({"format": {"type": "json_schema", "schema": SCHEMA}}, "honoured"), ({"task_budget": 1}, "noted"),
    ],
    "output_format": [({"type": "json_schema", "schema": SCHEMA}, "honoured")],
    "metadata": [({"user_id": "u"}, "echoed"), ({"odd": "u"}, "noted")],
    "service_tier": [("priority", "noted")],
    "thread": [({"type": "create"}, "refused")],
    **{
        name: [({"odd": 1}, "noted")]
        for name in (
            "container", "diagnostics", "inference_geo", "speed", "user_profile_id", "workspace_id", "betas",
            "billing_policy", "compaction", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers",
            "something_new",
        )
    },
}  # fmt: skip

ELSEWHERE = {
    "responses": {
        "client_metadata",  # the client's own, and nobody's business
        "type",  # what a frame of a WebSocket is
        "stream_id",  # the lane of a frame
    },
    "chat": set(),
    "messages": {
        "cache_control",  # a hint at what to cache: everything is
    },
}
"""Fields without a consequence here, with the reason."""

TABLES = {"responses": RESPONSES, "chat": CHAT, "messages": MESSAGES}
SDK = {
    "responses": responses.ResponseCreateParamsBase,
    "chat": chats.CompletionCreateParamsBase,
    "messages": beta_messages.MessageCreateParamsBase,
}
SAYS = {"echo", "notes", "asked", "items", "_prompts"}
"""Of an Ask: what it says, beside what it does."""


def read(api: str, **body: Any) -> Ask:
    whole: dict[str, Any] = {"model": "muse", **body}
    if api == "responses":
        made = {"input": "hi", **whole}
    else:
        whole = {"messages": HI, **({"max_tokens": 9} if api == "messages" else {}), **whole}
        made = (from_chat if api == "chat" else from_messages)(whole)
    return from_request(made, history=(), new_id=lambda prefix: prefix, **BLOBS)


def becomes(api: str, name: str, value: Any) -> set[str]:
    """What becomes of a field, as far as it can be seen."""
    plain = read(api)
    try:
        given = read(api, **{name: value})
    except ApiError as error:
        return {"refused"} if 400 <= error.status < 500 else set()
    seen = {
        "honoured": any(
            shown(getattr(given, field.name)) != shown(getattr(plain, field.name))
            for field in fields(Ask)
            if field.name not in SAYS
        ),
        "echoed": given.echo != plain.echo,
        "noted": any(name in note for note in given.notes),
        "dropped": bool(given.tools.dropped),
    }
    return {effect for effect, true in seen.items() if true}


def shown(value: Any) -> Any:
    names = [tool.tool.wire_name for tool in value] if hasattr(value, "toolset") else None
    return value if names is None else names


ROWS = [
    pytest.param(api, name, value, effect, id=f"{api}-{name}-{effect}-{place}")
    for api, table in TABLES.items()
    for name, cases in table.items()
    for place, (value, effect) in enumerate(cases)
]


@pytest.mark.parametrize(("api", "name", "value", "effect"), ROWS)
def test_what_becomes_of_a_field_is_seen(api: str, name: str, value: Any, effect: str) -> None:
    assert effect in becomes(api, name, value)


@pytest.mark.parametrize("api", TABLES)
def test_the_tables_have_every_field_that_an_sdk_sends(api: str) -> None:
    sent = set(typing.get_type_hints(SDK[api]))
    assert sent - set(TABLES[api]) - ELSEWHERE[api] == set()


@pytest.mark.parametrize("api", TABLES)
def test_what_has_no_consequence_is_taken_without_a_word(api: str) -> None:
    for name in ELSEWHERE[api]:
        assert becomes(api, name, {"a": 1}) == set()
