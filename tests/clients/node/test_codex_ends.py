"""Codex CLI: silence, turns that end badly, refusals and faults are what it takes them for."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import httpx2
import pytest

from tests.clients.node.codex import PATH, codex
from tests.clients.node.serving import Server, http_answer
from tests.clients.node.turns import answer, call, thinking, turn

pytestmark = pytest.mark.clients

KEY = "sesame-open-123"
SAID = "Hello from here."
HELLO = [turn(answer(SAID))]
ONE_RETRY = {
    "model_providers__atem__request_max_retries": 1,
    "model_providers__atem__stream_max_retries": 1,
}
BROKEN = {"error": {"message": "It broke.", "type": "server_error", "param": None, "code": None}}


def over_http(folder, turns, *options, **more):
    return Server(folder, turns, "--no-websocket", *options, **more)


def asked(server):
    return len(server.bodies(PATH))


@contextmanager
def occupied(server):
    """While somebody else's response is being written."""
    body = {"model": "scripted", "input": "Hi", "stream": True}
    url = f"http://127.0.0.1:{server.own_port}{PATH}"
    with httpx2.stream("POST", url, json=body, timeout=30, trust_env=False) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        reading = threading.Thread(target=lambda: [None for _ in pieces])
        reading.start()
        yield
        reading.join()


@pytest.mark.parametrize("way", ["--websocket", "--no-websocket"])
def test_a_silence_longer_than_its_patience_is_bridged_by_heartbeats(tmp_path, way):
    slow = {"first_token_seconds": 5}
    patience = {"model_providers__atem__stream_idle_timeout_ms": 2000}
    with Server(tmp_path, HELLO, way, "--heartbeat-seconds", "0.5", script=slow) as server:
        ran = codex(server, tmp_path / "codex", **ONE_RETRY, **patience)
        requests = len(server.asked)
    assert (ran.said, requests) == ([SAID], 1), ran.told
    assert "Reconnecting" not in ran.told


def test_without_heartbeats_it_gives_up_which_is_what_the_test_above_rests_on(tmp_path):
    slow = {"first_token_seconds": 5}
    patience = {"model_providers__atem__stream_idle_timeout_ms": 2000}
    with over_http(tmp_path, HELLO, "--heartbeat", "off", script=slow) as server:
        ran = codex(server, tmp_path / "codex", **ONE_RETRY, **patience)
    assert ran.end == "turn.failed"
    assert "idle timeout" in ran.told


def test_a_response_that_fails_on_the_way_is_asked_for_again_and_then_told(tmp_path):
    with over_http(tmp_path, [turn(answer("It begins well."), fail="No power.")]) as server:
        began = time.monotonic()
        ran = codex(server, tmp_path / "codex", **ONE_RETRY)
        seconds, requests = time.monotonic() - began, asked(server)
    assert (ran.end, requests) == ("turn.failed", 2)
    assert seconds < 20, "the body has to end with the event that ends the response"


def test_an_answer_that_was_cut_is_shown_and_the_turn_fails_for_that_reason(tmp_path):
    with over_http(tmp_path, [turn(" to=user<|message|>It begins and")]) as server:
        ran = codex(server, tmp_path / "codex")
        requests = asked(server)
    assert ran.said == ["It begins and"]
    assert (ran.end, requests) == ("turn.failed", 1)
    assert "max_output_tokens" in ran.told


def test_400_a_prompt_that_is_too_long_is_told_as_that_and_not_sent_again(tmp_path):
    with over_http(tmp_path, HELLO, script={"context": 500}) as server:
        ran = codex(server, tmp_path / "codex")
        requests = asked(server)
    assert (ran.end, requests) == ("turn.failed", 1)
    assert "ran out of room in the model's context window" in ran.told


def test_401_a_wrong_key_is_told(tmp_path):
    with over_http(tmp_path, HELLO, key=KEY) as server:
        ran = codex(server, tmp_path / "codex", key="wrong-key-12345", **ONE_RETRY)
    assert ran.end == "turn.failed"
    assert "401 Unauthorized: Incorrect API key provided." in ran.told


@pytest.mark.parametrize("way", ["--websocket", "--no-websocket"])
def test_the_right_key_lets_it_in(tmp_path, way):
    with Server(tmp_path, HELLO, way, key=KEY) as server:
        ran = codex(server, tmp_path / "codex", key=KEY)
    assert ran.said == [SAID], ran.told


def test_404_a_model_that_is_not_served_is_told_and_not_asked_for_again(tmp_path):
    with over_http(tmp_path, HELLO) as server:
        ran = codex(server, tmp_path / "codex", "Hi", "-m", "another")
        requests = asked(server)
    assert (ran.end, requests) == ("turn.failed", 1)
    assert "The model 'another' does not exist here" in ran.told


def test_429_it_comes_back_when_the_server_has_room(tmp_path):
    slow = {"first_token_seconds": 3}
    with over_http(tmp_path, HELLO, "--running", "1", "--queue", "0", script=slow) as server:
        with occupied(server):
            ran = codex(server, tmp_path / "codex")
        requests = asked(server)
    assert ran.said == [SAID], ran.told
    assert requests > 1
    assert "429 Too Many Requests" in ran.told


@pytest.mark.parametrize("status", [500, 502, 504])
def test_5xx_it_asks_again(tmp_path, status):
    with over_http(tmp_path, HELLO, answers=[http_answer(status, BROKEN)]) as server:
        ran = codex(server, tmp_path / "codex")
        requests = asked(server)
    assert (ran.said, requests) == ([SAID], 2), ran.told


def test_500_of_an_engine_that_has_no_answer_ends_the_turn_after_its_retries(tmp_path):
    with over_http(tmp_path, [turn(answer("Never."), last="nobody says this")]) as server:
        ran = codex(server, tmp_path / "codex", **ONE_RETRY)
    assert ran.end == "turn.failed"


def test_503_of_a_server_that_is_ending_is_told_as_no_room(tmp_path):
    slow = {"first_token_seconds": 8}
    with over_http(tmp_path, HELLO, script=slow) as server, occupied(server):
        server.terminate()
        time.sleep(0.3)
        ran = codex(server, tmp_path / "codex", **ONE_RETRY)
    assert ran.end == "turn.failed"
    assert "at capacity" in ran.told


def test_a_conversation_past_its_limit_is_compacted_and_goes_on(tmp_path):
    turns = [
        turn(answer("SUMMARY: the file is written."), last="^user(?s:.*)handoff summary"),
        turn(answer("It is done."), last="^user", all="SUMMARY: the file is written"),
        turn(thinking(call("exec_command", cmd="echo 42 > out.txt"))),
    ]
    with over_http(tmp_path, turns) as server:
        ran = codex(server, tmp_path / "codex", model_auto_compact_token_limit=1000)
        _, compacting, after = server.bodies(PATH)
    assert ran.said == ["It is done."], ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    assert "tools" not in compacting or compacting["tools"] == []
    assert "SUMMARY: the file is written." in str(after["input"])
    assert "function_call" not in [item["type"] for item in after["input"]]
