"""What users of other servers complained about, where it takes a server to see it."""

from __future__ import annotations

import secrets

import pytest

from tests.server.running import HELLO, MODEL, running


def test_c8_responses_outlive_the_server_and_their_bytes_are_bounded(tmp_path):
    kept = {"store": "sqlite", "store_path": str(tmp_path / "kept.db"), "store_bytes": 40_000}
    with running(lambda request: HELLO, **kept) as server:
        made = [server.create(secrets.token_hex(3000)).json()["id"] for _ in range(30)]
    with running(lambda request: HELLO, **kept) as server:
        found = [server.http.get(f"/v1/responses/{each}").status_code for each in made]
        assert found[0] == 404
        assert found[-1] == 200
        assert found.count(200) < 30
        assert server.create("On.", previous_response_id=made[-1]).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": [{"role": "user", "content": "Hi"}, {"role": "user", "content": [{"type": 1}]}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
        {"input": [{"type": "item_reference", "id": "msg_0"}]},
        {"tools": [{"type": "function", "name": "a"}, {"type": "function"}]},
        {"tool_choice": {"type": "function", "name": "absent"}},
        {"text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": {}}}},
        {"previous_response_id": "resp_0"},
        {"temperature": 3},
    ],
)
def test_c18_what_is_wrong_with_a_request_is_told_before_a_stream_begins(served, wrong):
    """sgl-project/sglang#9963."""
    asked = {"model": MODEL, "input": "Hi", "stream": True, **wrong}
    answered = served.http.post("/v1/responses", json=asked)
    assert 400 <= answered.status_code < 500
    assert answered.json()["error"]["message"]


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO) as server:
        yield server
