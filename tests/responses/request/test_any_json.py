"""Any JSON is an Ask that can be rendered, or an ApiError that is the client's; nothing else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.responses import hosted
from atem.responses.faults import ApiError
from atem.responses.fields import FIELDS
from atem.responses.inputs import PREFIXES
from atem.responses.request import from_request
from tests.responses.request.asking import call, function, output, user

WORDS = st.sampled_from([
    "", "x", "user", "assistant", "system", "developer", "auto", "none", "required", "message", "reasoning", "c1", "c2", "read", "mail",
    "object", "string", "json_schema", "{}", "data:image/png;base64,eA==", "https://host/", "<|eot|>", "self", "\ud800", "a b", *PREFIXES, *hosted.TYPES,
    "function", "custom", "namespace", "tool_search", "web_search", "allowed_tools", "input_text", "input_image", "input_file", "item_reference",
])  # fmt: skip
KEYS = st.sampled_from([
    "type", "role", "content", "text", "id", "call_id", "name", "namespace", "arguments", "input", "output", "summary", "encrypted_content", "tools",
    "parameters", "properties", "description", "format", "schema", "strict", "image_url", "file_data", "mode", "execution", "defer_loading", "effort",
    "reasoning", "action", "$ref", "required", "definition", "phase", "status",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=4)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
ITEM = st.dictionaries(KEYS, ANYTHING, max_size=5).flatmap(
    lambda fields: WORDS.map(lambda kind: {**fields, "type": kind})
)
TYPICAL = st.sampled_from([user(), call(), output(), call("mail.send", "c2"), output("x", "c2")])
ITEMS = st.lists(ITEM | TYPICAL | ANYTHING, max_size=6)
TOOLS = st.lists(ITEM | st.just(function()) | ANYTHING, max_size=4)
BODY = st.fixed_dictionaries(
    {"model": st.just("muse"), "input": ITEMS | ANYTHING, "tools": TOOLS | st.none() | ANYTHING},
    optional={name: ANYTHING for name in FIELDS if name not in ("model", "input", "tools", "prompt")},
)  # fmt: skip


def status(body: Any) -> int:
    """200 for an Ask that is rendered, else the status it is refused with."""
    try:
        made = from_request(body, lookup={"x": user()}.get)
        text = made.prompt().text()
    except ApiError as error:
        json.dumps(error.body())
        return error.status
    text.encode()
    json.dumps([made.echo, made.items, made.notes], ensure_ascii=False, allow_nan=False).encode()
    return 200


@given(BODY)
@settings(max_examples=300, deadline=2000)
def test_any_body_is_an_ask_or_the_clients_fault(body: Any) -> None:
    assert status(body) in (200, 400, 404)


@given(
    st.fixed_dictionaries({"model": st.just("m"), "input": ITEMS, "tools": st.just([function()])})
)
@settings(max_examples=300, deadline=2000)
def test_any_items_are_an_ask_or_the_clients_fault(body: Any) -> None:
    assert status(body) in (200, 400, 404)


@given(ANYTHING)
@settings(deadline=2000)
def test_any_json_at_all_is_an_ask_or_the_clients_fault(body: Any) -> None:
    assert status(body) in (200, 400, 404)


@given(st.lists(TYPICAL | st.just({"role": "developer", "content": "d"}) | st.just({"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}), max_size=12))  # fmt: skip
def test_every_call_has_a_result_behind_its_turn_and_nothing_is_lost(items: list[Any]) -> None:
    body = {"model": "m", "input": items}
    if status(body) != 200:
        return
    messages = from_request(body).messages
    calls = sum(bool(message.calls) for message in messages)
    assert calls == sum(item.get("type") == "function_call" for item in items)
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.name in waiting:
                waiting.remove(message.name)
        elif message.role != "assistant":
            assert not waiting
        waiting += [call.raw_name for call in message.calls]
    assert not waiting


HUGE = {
    "same call ids": [call(arguments="")] * 9_000 + [output()] * 9_000,
    "calls without outputs": [call(call_id=f"c{n}") for n in range(19_000)],
    "system messages": [user(), *[{"role": "system", "content": "x"}] * 19_000],
    "parts": [{"role": "user", "content": [{"type": "input_text", "text": "x"}] * 200_000}],
    "broken arguments": [call(call_id=f"c{n}", arguments='{"a":' * 50) for n in range(9_000)],
    "surrogates": [user("\ud800" * 1_000_000)],
}


@pytest.mark.parametrize("name", HUGE)
def test_work_is_bounded(name: str) -> None:
    before = time.process_time()
    assert status({"model": "m", "input": HUGE[name]}) == 200
    assert time.process_time() - before < 10
