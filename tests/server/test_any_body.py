"""Whatever JSON comes, the answer is JSON and no fault of ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.running import HELLO, MODEL, running

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "input", "messages", "tools", "tool_choice", "text", "reasoning", "include", "store", "stream",
    "background", "previous_response_id", "conversation", "metadata", "max_output_tokens",
    "max_tokens", "temperature", "top_logprobs", "truncation", "instructions", "stop", "system",
    "response_format", "thinking", "items", "prompt", "stream_options", "n", "user",
]  # fmt: skip
BODIES = st.fixed_dictionaries(
    {"model": st.just(MODEL) | ANY},
    optional=dict.fromkeys(FIELDS, ANY),
)
PATHS = (
    "/v1/responses", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/responses/input_tokens", "/v1/responses/compact", "/v1/conversations",
)  # fmt: skip


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO) as server:
        yield server


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("path", PATHS)
@given(body=BODIES)
def test_no_body_is_a_fault_of_ours(served, path, body):
    answered = served.http.post(path, json=body)
    assert answered.status_code < 500, answered.text
    if answered.headers["content-type"] == "application/json":
        assert ("error" in answered.json()) is (answered.status_code >= 400) or answered.json()[
            "error"
        ] is None


@settings(max_examples=100)
@given(raw=st.binary(max_size=40))
def test_no_bytes_are_a_fault_of_ours(served, raw):
    headers = {"content-type": "application/json"}
    answered = served.http.post("/v1/responses", content=raw, headers=headers)
    assert answered.status_code == 400
    assert json.loads(answered.content)["error"]["message"]
