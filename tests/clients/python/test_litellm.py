"""litellm, as a client, runs a tool loop by each of the three APIs."""

from __future__ import annotations

import pytest

from tests.clients.python.driving import SAID, driver_of

pytestmark = pytest.mark.clients
driven = driver_of("with_litellm")


@pytest.mark.parametrize("way", ["responses", "chat", "messages"])
def test_a_turn_with_a_tool(driven, way):
    told = driven(way)
    assert (told["text"], told["looked"]) == (SAID, ["Oslo"])
    assert told["used"] > 0


@pytest.mark.parametrize("way", ["responses_streamed", "chat_streamed"])
def test_a_call_from_a_stream(driven, way):
    assert driven(way) == {"looked": ["Oslo"]}
