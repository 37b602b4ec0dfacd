"""What the server counts is what happened."""

from __future__ import annotations

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from atem.engine import Step
from atem.errors import RemoteError
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    HELLO,
    LONG,
    THOUGHT,
    Broken,
    block,
    invoke,
    paced,
    raw_request,
    running,
    wait,
)


def counted(server):
    """Every sample by its name and the values of its labels."""
    text = server.http.get("/metrics").text
    return {
        (sample.name.removeprefix("atem_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_the_route_that_they_found_and_their_status():
    with running(lambda request: HELLO) as server:
        server.create()
        server.create(store=3)
        server.http.get("/secrets/of/somebody")
        found = counted(server)
    requests = {key[1:]: value for key, value in found.items() if key[0] == "requests_total"}
    assert requests == {
        ("/v1/responses", "200"): 1,
        ("/v1/responses", "400"): 1,
        ("none", "404"): 1,
    }


def test_tokens_are_those_of_the_usage_that_the_client_was_told():
    with running(lambda request: THOUGHT + HELLO) as server:
        usage = server.create().json()["usage"]
        found = counted(server)
    assert {key[1]: value for key, value in found.items() if key[0] == "tokens_total"} == {
        "input": usage["input_tokens"],
        "cached": usage["input_tokens_details"]["cached_tokens"],
        "output": usage["output_tokens"],
        "reasoning": usage["output_tokens_details"]["reasoning_tokens"],
    }
    assert usage["output_tokens_details"]["reasoning_tokens"] > 0


def test_times_are_to_the_first_output_and_from_token_to_token():
    with running(paced(lambda request: LONG, rate=100, first=0.3)) as server:
        server.create(max_output_tokens=40)
        found = counted(server)
    assert found["first_output_seconds_count",] == found["token_seconds_count",] == 1
    assert found["first_output_seconds_sum",] > 0.3
    # The header's tokens come before the first output, at the same pace.
    assert 0.005 < found["token_seconds_sum",] < 0.1
    assert found["response_seconds_sum",] > found["first_output_seconds_sum",]


def test_what_runs_what_waits_and_what_is_open_is_counted_while_it_is():
    with running(paced(lambda request: LONG, rate=50), running=1) as server:
        first, second = raw_request(server), raw_request(server)
        with connect(f"ws://127.0.0.1:{server.port}/v1/responses", proxy=None):
            assert wait(lambda: counted(server)["streams", "websocket"] == 1)
            found = counted(server)
            assert (found["running",], found["waiting",], found["streams", "sse"]) == (1, 1, 2)
        first.close()
        second.close()
        assert wait(lambda: counted(server)["streams", "sse"] == 0)
        assert wait(lambda: counted(server)["running",] == counted(server)["waiting",] == 0)
        assert wait(lambda: counted(server)["streams", "websocket"] == 0)


def test_calls_not_passed_on_and_tools_not_offered_are_counted():
    wrong = block(invoke("nothing"), to="tool") + "<|eot|>"
    tool = {"type": "function", "name": "known", "parameters": {"type": "object"}}
    with running(lambda request: wrong) as server:
        server.create(tools=[tool, {"type": "web_search"}])
        found = counted(server)
    assert found["rejected_calls_total",] == 1
    assert found["dropped_tools_total",] == 1


def test_what_the_model_wrote_otherwise_than_it_should_is_counted_by_its_code():
    with running(lambda request: " to=user<|message|>Hel<|start|>lo.<|eot|>") as server:
        server.create()
        problems = {key for key in counted(server) if key[0] == "parser_problems_total"}
    assert problems


@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_fails_is_counted_and_logged_by_the_type_of_its_error(stream, caplog):
    with running(Broken(RemoteError("It is away."))) as server:
        server.create(stream=stream)
        found = counted(server)
    assert found["engine_errors_total", "RemoteError"] == 1
    assert "the engine failed: RemoteError" in caplog.text
    assert "away" not in caplog.text
    assert found["responses_total", "failed"] == 1


def test_an_engine_that_refuses_is_counted_too():
    class Away(ScriptedEngine):
        def generate(self, request):
            raise RemoteError("It is away.")

    with running(Away([])) as server:
        assert server.create().status_code == 502
        assert counted(server)["engine_errors_total", "RemoteError"] == 1


def test_the_size_of_the_store_is_what_it_holds():
    with running(lambda request: HELLO) as server:
        before = counted(server)["store_bytes",]
        made = server.create().json()["id"]
        assert counted(server)["store_bytes",] > before == 0
        server.http.delete(f"/v1/responses/{made}")
        assert counted(server)["store_bytes",] == 0


def test_nothing_that_a_client_wrote_is_in_them():
    with running(lambda request: [Step(piece=HELLO, finish="stop")]) as server:
        server.create("a secret", metadata={"name": "a secret"}, user="a secret")
        server.http.get("/a secret")
        text = server.http.get("/metrics").text
    assert "secret" not in json.dumps(text)
