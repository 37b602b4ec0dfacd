"""Answers beside the response itself are what the openai SDK says they are."""

from __future__ import annotations

import pytest
from openai.types.conversations import (
    Conversation,
    ConversationDeletedResource,
    ConversationItem,
    ConversationItemList,
)
from openai.types.responses import (
    CompactedResponse,
    InputTokenCountResponse,
    Response,
    ResponseItem,
    ResponseItemList,
)
from pydantic import TypeAdapter

from tests.server.running import HELLO, LONG, MODEL, THOUGHT, paced, running, wait

ITEMS = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
    {"type": "message", "role": "user", "content": "Hi"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Ah.", "annotations": []}],
    },
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
    {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "wet"},
    {"type": "custom_tool_call", "call_id": "d", "name": "write", "input": "text"},
    {"type": "custom_tool_call_output", "call_id": "d", "output": "done"},
    {"role": "user", "content": "Go on."},
]


@pytest.fixture(scope="module")
def served():
    with running(lambda request: THOUGHT + HELLO) as server:
        yield server


def sent(server, method, path, body=None):
    answered = server.http.request(method, f"/v1{path}", json=body)
    assert answered.status_code == 200, answered.text
    return answered.json()


def checked(kind, value):
    return TypeAdapter(kind).validate_python(value, strict=True)


def test_input_items(served):
    made = served.create(ITEMS).json()["id"]
    listed = sent(served, "GET", f"/responses/{made}/input_items")
    found = checked(ResponseItemList, listed)
    assert len(found.data) == len(ITEMS)
    for item in listed["data"]:
        assert checked(ResponseItem, item).id == item["id"]


def test_input_tokens(served):
    body = {"model": MODEL, "input": ITEMS}
    assert checked(InputTokenCountResponse, sent(served, "POST", "/responses/input_tokens", body))


def test_a_response_that_was_cancelled():
    with running(paced(lambda request: LONG, rate=50)) as server:
        made = server.create(background=True).json()["id"]
        assert wait(lambda: server.service.slots.running == 1)
        found = checked(Response, sent(server, "POST", f"/responses/{made}/cancel"))
    assert found.status == "cancelled"


def test_a_compacted_list(served):
    body = {"model": MODEL, "input": ITEMS}
    compacted = sent(served, "POST", "/responses/compact", body)
    *kept, last = compacted["output"]
    # The SDK knows no message of a user in an output, though the API gives them.
    found = checked(CompactedResponse, {**compacted, "output": [last]})
    assert found.output[0].type == "compaction"
    assert [checked(ResponseItem, item).content[0].text for item in kept] == ["Hi", "Go on."]


def test_conversations(served):
    made = sent(served, "POST", "/conversations", {"items": ITEMS, "metadata": {"a": "b"}})
    path = f"/conversations/{checked(Conversation, made).id}"
    checked(Conversation, sent(served, "GET", path))
    checked(Conversation, sent(served, "POST", path, {"metadata": {}}))
    added = sent(served, "POST", f"{path}/items", {"items": ITEMS[:2]})
    listed = sent(served, "GET", f"{path}/items?limit=100")
    assert len(checked(ConversationItemList, added).data) == 2
    assert len(checked(ConversationItemList, listed).data) == len(ITEMS) + 2
    for item in listed["data"]:
        kept = sent(served, "GET", f"{path}/items/{item['id']}")
        assert checked(ConversationItem, kept).type == item["type"]
    left = sent(served, "DELETE", f"{path}/items/{listed['data'][0]['id']}")
    checked(Conversation, left)
    assert checked(ConversationDeletedResource, sent(served, "DELETE", path)).deleted
