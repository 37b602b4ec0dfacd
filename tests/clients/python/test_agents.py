"""openai-agents runs its tool loop by each of its model classes."""

from __future__ import annotations

import pytest

from tests.clients.python.driving import FOUND, SAID, driver_of

pytestmark = pytest.mark.clients
driven = driver_of("with_agents")

ITEMS = [
    "reasoning_item",
    "tool_call_item",
    "tool_call_output_item",
    "reasoning_item",
    "message_output_item",
]


@pytest.mark.parametrize("way", ["responses", "chat", "websocket"])
def test_a_turn_with_a_tool(driven, way):
    assert driven(way) == {"text": SAID, "looked": ["Oslo"], "items": ITEMS}


@pytest.mark.parametrize("way", ["responses_streamed", "chat_streamed"])
def test_a_turn_with_a_tool_as_a_stream(driven, way):
    told = {"text": SAID, "looked": ["Oslo"], "items": ITEMS, "deltas": SAID}
    assert driven(way) == told


def test_a_schema_for_the_answer_and_a_tool_at_once(driven):
    told = driven("structured")
    assert (told["text"], told["looked"]) == (FOUND, ["Oslo"])


def test_all_items_go_back_whole_and_the_reasoning_sealed(driven):
    first, second = driven.bodies("responses", "/v1/responses")
    sent = second["input"][len(first["input"]) :]
    assert [item["type"] for item in sent] == ["reasoning", "function_call", "function_call_output"]
    assert sent[0]["encrypted_content"].startswith("atem-r1.")
