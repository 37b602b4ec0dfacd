"""The anthropic SDK does a turn with a tool, in each of its ways."""

from __future__ import annotations

import pytest

from tests.clients.python.driving import FOUND, SAID, driver_of

pytestmark = pytest.mark.clients
driven = driver_of("with_anthropic")


@pytest.mark.parametrize("way", ["create", "stream", "tool_runner"])
def test_a_turn_with_a_tool(driven, way):
    told = driven(way)
    assert (told["text"], told["looked"]) == (SAID, ["Oslo"])
    assert (told["blocks"], told["stop"]) == (["thinking", "text"], "end_turn")
    assert told["used"] > 0


def test_the_helper_of_streams_sees_every_kind_of_delta(driven):
    assert {"thinking", "signature", "text", "input_json"} <= set(driven("stream")["kinds"])


def test_its_own_loop_goes_on_without_a_thread_and_sends_the_whole_conversation(driven):
    refused, *rest = driven.bodies("tool_runner", "/v1/messages")
    assert refused["thread"] == {"type": "create"}
    assert [("thread" in body, len(body["messages"])) for body in rest] == [(False, 1), (False, 3)]


def test_tokens_are_counted_as_they_are_then_read(driven):
    counted, read = driven("count")
    assert counted == read


def test_structured_output_is_parsed(driven):
    assert driven("parsed") == FOUND


def test_what_is_refused_is_the_error_that_the_sdk_has_for_it(driven):
    assert driven("refused") == {
        "model": ["NotFoundError", 404, "not_found_error"],
        "budget": ["BadRequestError", 400, "invalid_request_error"],
    }
