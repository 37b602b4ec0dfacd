"""Requests that are meant to break the server: none is a fault of ours."""

from __future__ import annotations

import json

import pytest

from tests.server.running import HELLO, MODEL, running

HALF = "\ud800"
"""Half of a character, which JSON can spell and UTF-8 can't."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    file = tmp_path_factory.mktemp("store") / "responses.db"
    with running(lambda request: HELLO, store="sqlite", store_path=str(file)) as server:
        yield server


def post(served, path, **body):
    raw = json.dumps({"model": MODEL, **body}).encode()
    return served.http.post(path, content=raw, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    "fields",
    [
        {"previous_response_id": HALF, "input": "x"},
        {"conversation": HALF, "input": "x"},
        {"conversation": {"id": HALF}, "input": "x"},
        {"input": [{"type": "item_reference", "id": HALF}]},
    ],
)
def test_an_id_that_has_no_utf_8_form_is_one_that_nothing_has(served, fields):
    answered = post(served, "/v1/responses", **fields)
    assert answered.status_code in (400, 404), answered.text
    assert "not" in answered.json()["error"]["message"]


@pytest.mark.parametrize("name", [[], {}, 1, True])
def test_a_tool_whose_name_is_no_text_is_refused(served, name):
    asked = [{"role": "user", "content": "x"}]
    tools = [{"name": name, "input_schema": {}}]
    answered = post(served, "/v1/messages", max_tokens=9, messages=asked, tools=tools)
    assert answered.status_code == 400
    assert "tools[0].name" in answered.json()["error"]["message"]


def test_a_chat_without_messages_is_told_which_field_is_missing(served):
    error = post(served, "/v1/chat/completions").json()["error"]
    assert (error["code"], error["param"]) == ("missing_required_parameter", "messages")


def test_the_number_of_a_turn_may_have_any_number_of_digits(served):
    assert served.http.get("/inspect/live/x/" + "9" * 5000).status_code == 404
