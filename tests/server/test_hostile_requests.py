"""Requests that are meant to break the server: none is a fault of ours."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest

from atem.responses.output.syntax import Syntax
from tests.server.running import HELLO, MODEL, call, running, wait

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


def test_a_client_that_leaves_while_it_sends_is_no_error_of_ours(served):
    errors = served.http.get("/metrics").text.count("atem_errors_total 0.0")
    head = f"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(f"{head}content-length: 99\r\n\r\n".encode() + b"{")
    metric = 'atem_requests_total{route="/v1/responses",status="499"} 1.0'
    assert wait(lambda: metric in served.http.get("/metrics").text)
    assert served.http.get("/metrics").text.count("atem_errors_total 0.0") == errors == 1


def test_a_body_of_very_many_values_is_refused_and_holds_up_nobody(served):
    inner = b"[" + b"[]," * 19_000 + b"[]],"
    raw = b'{"input":[' + inner * (served.service.settings.max_body // len(inner) - 1) + b"0]}"
    headers = {"content-type": "application/json"}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(served.http.post, "/v1/responses", content=raw, headers=headers)
        began, slowest = monotonic(), 0.0
        while not sent.done():
            asked = monotonic()
            assert served.http.get("/health").status_code == 200
            slowest = max(slowest, monotonic() - asked)
        assert sent.result().status_code == 400
    assert slowest < 2
    assert monotonic() - began < 20


def test_a_call_that_takes_long_to_check_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(Syntax, "fault", lambda *_: sleep(2))
    grammar = {"type": "grammar", "syntax": "regex", "definition": "a+"}
    asked = {"tools": [{"type": "custom", "name": "c", "format": grammar}]}
    said = call("c", input="aaa")
    with running(lambda request: said) as server, ThreadPoolExecutor(1) as pool:
        sent, slowest = pool.submit(server.create, **asked), 0.0
        while not sent.done():
            began = monotonic()
            assert server.http.get("/health").status_code == 200
            slowest = max(slowest, monotonic() - began)
        assert sent.result().json()["output"][0]["input"] == "aaa"
    assert slowest < 1.5


def test_the_number_of_a_turn_may_have_any_number_of_digits(served):
    assert served.http.get("/inspect/live/x/" + "9" * 5000).status_code == 404
