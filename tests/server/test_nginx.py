"""Replicas behind nginx, as examples/serve has it: affinity, streams, and replicas that go away."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count, pairwise

import pytest
from websockets.sync.client import connect

from tests.server.nginx import behind_nginx
from tests.server.process import Process
from tests.server.running import MODEL, types, wait

pytestmark = pytest.mark.slow

SCRIPT = """
[[turns]]
last = "slowly"
write = " to=user<|message|>{}<|eot|>"
[[turns]]
write = " to=user<|message|>Hello there.<|eot|>"
""".format("word " * 80)


class Replicas(dict):
    """Processes by their ports; all keep what they keep in one store."""

    def __init__(self, stack, script, redis):
        store = ["--store", "redis", "--store-name", redis.name(), "--store-url", redis.url]
        self._start = lambda port: stack.enter_context(
            Process("--engine", f"scripted:{script}", *store, "--port", str(port))
        )
        with ThreadPoolExecutor(3) as pool:
            for process in pool.map(self._start, (0, 0, 0)):
                self[process.url.split(":")[2].split("/")[0]] = process

    def restart(self, port):
        self[port].process.wait(20)
        self[port] = self._start(port)


@pytest.fixture(scope="module")
def behind(tmp_path_factory, redis):
    script = tmp_path_factory.mktemp("nginx") / "script.toml"
    script.write_text("tokens_per_second = 400\n" + SCRIPT)
    with ExitStack() as stack:
        replicas = Replicas(stack, script, redis)
        behind = stack.enter_context(behind_nginx(list(replicas)))
        behind.replicas = replicas
        yield behind


def test_requests_with_a_key_go_to_one_replica_and_keys_to_all(behind):
    keys = [f"key-{number}" for number in range(36)]
    replicas = [behind.replica_of(key) for key in keys]
    assert set(replicas) == set(behind.replicas)
    assert [behind.replica_of(key) for key in keys[:9]] == replicas[:9]


def test_a_key_is_found_behind_a_long_input_and_in_a_body_without_a_length(behind):
    replica = behind.replica_of("k")
    body = {
        "model": MODEL,
        "input": '"prompt_cache_key":"no"' + "x" * 100_000,
        "prompt_cache_key": "k",
    }
    text = json.dumps(body).encode()
    for content in (text, iter([text[:5000], text[5000:]])):
        headers = {"content-type": "application/json"}
        assert behind.http.post("/v1/responses", content=content, headers=headers).is_success
        assert behind.asked() == [replica]


def test_without_a_key_the_session_decides(behind):
    replica = behind.replica_of("s")
    for _ in range(3):
        assert behind.create(headers={"session-id": "s"}).is_success
        assert behind.asked() == [replica]


def test_an_event_arrives_before_the_last_one_is_written(behind):
    began, times = time.monotonic(), []
    body = {"model": MODEL, "input": "slowly", "stream": True}
    with behind.http.stream("POST", "/v1/responses", json=body) as answer:
        for part in answer.iter_bytes():
            times += [time.monotonic() - began] * part.count(b"output_text.delta")
    behind.asked()
    assert len(times) > 30
    assert times[0] < times[-1] / 3
    assert max(later - sooner for sooner, later in pairwise(times)) < times[-1] / 3


def test_a_websocket_passes_and_goes_on_by_its_session(behind):
    replica = behind.replica_of("w")
    address = f"ws://127.0.0.1:{behind.port}/v1/responses"
    with connect(address, additional_headers={"session-id": "w"}) as link:
        link.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hi"}))
        events = [json.loads(link.recv(10))]
        while events[-1]["type"] != "response.completed":
            events.append(json.loads(link.recv(10)))
    assert types(events)[0] == "created"
    assert behind.asked() == [replica]


def test_an_answer_of_one_replica_is_gone_on_from_read_and_deleted_at_another(behind):
    replicas, keys = {}, map("chain-{}".format, count())
    while len(replicas) < 2:
        key = next(keys)
        replicas.setdefault(behind.replica_of(key), key)
    (one, key), (other, another) = replicas.items()
    first = behind.create(prompt_cache_key=key).json()
    second = behind.create(prompt_cache_key=another, previous_response_id=first["id"]).json()
    assert (behind.asked(), behind.asked()) == ([one], [other])
    for replica in behind.replicas.values():
        found = behind.http.get(f"{replica.url}/responses/{second['id']}").json()
        assert found == second
    assert behind.http.delete(f"{behind.replicas[one].url}/responses/{second['id']}").is_success
    found = behind.http.get(f"{behind.replicas[other].url}/responses/{second['id']}")
    assert found.status_code == 404


def test_what_a_killed_replica_had_not_answered_goes_to_another_until_it_is_back(behind):
    replica = behind.replica_of("lost")
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(behind.create("slowly", prompt_cache_key="lost"))
    )
    asking.start()
    time.sleep(0.3)
    behind.replicas[replica].process.kill()
    asking.join(20)
    assert answers[0].json()["status"] == "completed"
    first, *others = behind.asked()
    assert first == replica
    assert replica not in others
    assert [behind.replica_of("lost") for _ in range(3)] == others * 3
    behind.replicas.restart(replica)
    assert wait(lambda: behind.replica_of("lost") == replica), "after fail_timeout"


def test_a_replica_that_shuts_down_finishes_its_streams_and_gets_no_more(behind):
    replica, streamed = behind.replica_of("end"), []

    def stream():
        body = {"model": MODEL, "input": "slowly", "stream": True, "prompt_cache_key": "end"}
        with behind.http.stream("POST", "/v1/responses", json=body) as answer:
            streamed.append(answer.read())

    asking = threading.Thread(target=stream)
    asking.start()
    time.sleep(0.3)
    behind.replicas[replica].process.send_signal(signal.SIGTERM)
    ready = behind.replicas[replica].url.replace("/v1", "/ready")
    assert wait(lambda: behind.http.get(ready).status_code == 503)
    assert behind.replica_of("end") != replica
    asking.join(20)
    assert b"event: response.completed" in streamed[0]
    assert behind.replicas[replica].process.wait(20) == 0


def test_what_nginx_refuses_by_itself_is_an_error_as_clients_read_it(behind):
    body = b" " * (33 << 20)
    answer = behind.http.post("/v1/responses", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    behind.asked()
    for replica in behind.replicas.values():
        replica.process.kill()
    answer = behind.create()
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["error"]["type"] == "server_error"
