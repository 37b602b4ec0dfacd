"""The openai SDK does a turn with a tool, in each of its ways."""

from __future__ import annotations

import pytest

from tests.clients.node.serving import Server
from tests.clients.node.turns import answer, turn
from tests.clients.python.driving import FOUND, SAID, Driver, driver_of

pytestmark = pytest.mark.clients

ANSWERED = ["reasoning", "message"]


driven = driver_of("with_openai")


def outputs(body):
    return [item for item in body["input"] if item.get("type") == "function_call_output"]


@pytest.mark.parametrize("way", ["json_form", "by_id", "stream", "stream_helper", "websocket"])
def test_a_turn_with_a_tool(driven, way):
    told = driven(way)
    assert (told["text"], told["status"], told["items"]) == (SAID, "completed", ANSWERED)
    assert told["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    if way == "by_id":
        assert told["kept"] == ["function_call_output"]
    if way == "stream_helper":
        assert told["deltas"] == SAID


@pytest.mark.parametrize("way", ["json_form", "stream", "stream_helper"])
def test_all_items_go_back_and_the_output_with_them(driven, way):
    first, second = driven.bodies(way, "/v1/responses")
    assert [item["output"] for item in outputs(second)] == ["7 degrees"]
    assert second["input"][0] == first["input"][0]


@pytest.mark.parametrize(("way", "cancelled"), [("background", None), ("polled", "cancelled")])
def test_a_background_response(tmp_path, way, cancelled):
    turns = [turn(answer("word " * 400), last="long"), turn(answer(SAID))]
    with Server(tmp_path, turns, script={"tokens_per_second": 100}) as server:
        told = Driver(server, "with_openai", tmp_path)(way)
    assert (told["text"], told["status"]) == (SAID, "completed")
    assert told.get("cancelled") == cancelled


def test_structured_output_is_parsed(driven):
    assert driven("parsed") == [FOUND] * 2


def test_a_chat_with_a_tool(driven):
    told = driven("chat")
    assert (told["text"], told["finish"]) == (SAID, "tool_calls")
    assert told["used"] > 0


def test_the_helper_of_chats_makes_the_call_of_the_stream(driven):
    told = driven("chat_helper")
    assert told["arguments"] == {"city": "Oslo"}
    assert "tool_calls.function.arguments.done" in told["kinds"]


def test_what_is_refused_is_the_error_that_the_sdk_has_for_it(driven):
    assert driven("refused") == {
        "model": ["NotFoundError", 404, "model_not_found", "model"],
        "temperature": ["BadRequestError", 400, "invalid_value", "temperature"],
        "previous": ["BadRequestError", 400, "previous_response_not_found", "previous_response_id"],
        "schema": ["BadRequestError", 400, "invalid_json_schema", "text.format.schema"],
    }
