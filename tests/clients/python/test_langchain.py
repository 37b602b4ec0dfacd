"""langchain-openai runs a loop with bound tools by each API."""

from __future__ import annotations

import pytest

from tests.clients.python.driving import FOUND, SAID, driver_of

pytestmark = pytest.mark.clients
driven = driver_of("with_langchain")


@pytest.mark.parametrize(
    "way", ["responses", "responses_by_id", "responses_streamed", "chat", "chat_streamed"]
)
def test_a_turn_with_a_tool(driven, way):
    told = driven(way)
    assert (told["text"], told["looked"]) == (SAID, ["Oslo"])
    assert told["used"] > 0


@pytest.mark.parametrize("way", ["responses_schema", "chat_schema"])
def test_structured_output(driven, way):
    assert driven(way) == FOUND
