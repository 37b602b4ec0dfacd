"""examples/serve/ray_serve.py as Ray runs it: JSON, events, a WebSocket, and a client that leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import httpx2
import pytest
from websockets.sync.client import connect

from tests.server.databases import folder
from tests.server.nginx import SERVE
from tests.server.running import MODEL, read_events, types, wait

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray has its own environment: make scale"),
]

SCRIPT = """
tokens_per_second = 200
[[turns]]
last = "slowly"
write = " to=user<|message|>{}<|eot|>"
[[turns]]
write = " to=user<|message|>Hello there.<|eot|>"
""".format("word " * 80)

DRIVER = """
import ray, sys
from ray import serve
ray.init(num_cpus=2, include_dashboard=False, _temp_dir=sys.argv[1], object_store_memory=1 << 27)
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
from ray_serve import app
serve.run(app)
print("up", flush=True)
sys.stdin.read()
serve.shutdown()
"""


@pytest.fixture(scope="module")
def address(redis, free_port, tmp_path_factory):
    """Host and port of a deployment with its two replicas."""
    script = tmp_path_factory.mktemp("ray") / "script.toml"
    script.write_text(SCRIPT)
    with folder() as place:
        settings = {
            "ATEM_SERVE_ENGINE": f"scripted:{script}",
            "ATEM_SERVE_STORE": "redis",
            "ATEM_SERVE_STORE_URL": redis.url,
            "ATEM_SERVE_STORE_NAME": redis.name(),
            "PYTHONPATH": str(SERVE),
            "HOME": str(place),  # where Ray keeps a token
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, place, str(free_port)],
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with driver:
            assert "up\n" in iter(driver.stdout.readline, "")
            yield f"127.0.0.1:{free_port}"
            driver.stdin.close()


@pytest.fixture
def http(address):
    with httpx2.Client(base_url=f"http://{address}", timeout=20, trust_env=False) as client:
        yield client


def body(said, **fields):
    return {"model": MODEL, "input": said, **fields}


def test_json_is_answered_and_gone_on_from_whichever_replica_is_asked(http):
    previous = None
    for _ in range(8):
        answer = http.post("/v1/responses", json=body("Hi", previous_response_id=previous))
        assert answer.status_code == 200, answer.text
        previous = answer.json()["id"]
    items = http.get(f"/v1/responses/{previous}/input_items").json()["data"]
    assert len(items) >= 1


def test_an_event_arrives_before_the_last_one_is_written(http):
    began, times, parts = time.monotonic(), [], []
    with http.stream("POST", "/v1/responses", json=body("slowly", stream=True)) as answer:
        for part in answer.iter_bytes():
            parts.append(part)
            times.append(time.monotonic() - began)
    assert types(read_events(b"".join(parts)))[-1] == "completed"
    assert len(times) > 50
    assert times[2] < times[-1] / 3


def test_a_websocket_is_answered(address):
    with connect(f"ws://{address}/v1/responses") as link:
        link.send(json.dumps({"type": "response.create", **body("Hi")}))
        while json.loads(link.recv(20))["type"] != "response.completed":
            pass


def test_what_a_client_leaves_ends(http):
    def running():
        states = [http.get("/ready").json() for _ in range(6)]  # of one replica or the other
        return max(state["running"] for state in states)

    with http.stream("POST", "/v1/responses", json=body("slowly", stream=True)) as answer:
        parts = answer.iter_bytes()
        next(parts)
        assert wait(lambda: running() == 1, 1)
    left = time.monotonic()
    assert wait(lambda: running() == 0, 1)
    assert time.monotonic() - left < 1
