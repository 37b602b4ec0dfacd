"""A server without keys and the web pages that a browser shows on the same machine."""

from __future__ import annotations

import pytest

from tests.server.running import HELLO, MODEL, running

BODY = {"model": MODEL, "input": "Hi"}


@pytest.fixture(scope="module")
def served():
    named = {"cors_origin": ("https://app.example",), "allowed_host": ("proxy.example",)}
    with running(lambda request: HELLO, **named) as server:
        yield server


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8420"}, 200),
        ({"host": "[::1]:8420"}, 200),
        ({"host": "proxy.example"}, 200),
        ({"host": "LocalHost:8420"}, 200),
        ({"host": "PROXY.example"}, 200),
        ({"host": "[::1]evil.example"}, 403),
        ({"host": "evil.example:8420"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "https://app.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_only_its_own_names_and_the_named_pages_are_answered(served, headers, status):
    answered = served.http.post("/v1/responses", json=BODY, headers=headers)
    assert answered.status_code == status
    assert served.http.get("/v1/models", headers=headers).status_code == status


def test_with_a_key_the_key_decides():
    key = "a-key-of-a-client"
    with running(lambda request: HELLO, api_key=(key,)) as server:
        headers = {"host": "any.example", "origin": "https://any.example", "x-api-key": key}
        assert server.http.post("/v1/responses", json=BODY, headers=headers).status_code == 200
