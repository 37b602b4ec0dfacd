"""pydantic-ai runs its tool loop and reads its structured output by each API."""

from __future__ import annotations

import pytest

from tests.clients.python.driving import FOUND, SAID, driver_of

pytestmark = pytest.mark.clients
driven = driver_of("with_pydantic_ai")

PARTS = ["user-prompt", "thinking", "tool-call", "tool-return", "thinking", "text"]


@pytest.mark.parametrize("way", ["responses", "chat", "messages"])
def test_a_turn_with_a_tool(driven, way):
    assert driven(way) == {"text": SAID, "looked": ["Oslo"], "parts": PARTS}


@pytest.mark.parametrize("way", ["responses_streamed", "chat_streamed"])
def test_a_turn_with_a_tool_as_a_stream(driven, way):
    assert driven(way) == {"text": SAID, "looked": ["Oslo"]}


@pytest.mark.parametrize("way", ["responses_schema", "chat_schema"])
def test_a_schema_for_the_answer_and_a_tool_at_once(driven, way):
    told = driven(way)
    assert (told["text"], told["looked"]) == (FOUND, ["Oslo"])


@pytest.mark.parametrize("way", ["responses_final_tool", "chat_final_tool"])
def test_an_answer_that_is_a_call(driven, way):
    told = driven(way)
    assert (told["text"], told["looked"]) == (FOUND, ["Oslo"])
    assert told["parts"][-2:] == ["tool-call", "tool-return"]
