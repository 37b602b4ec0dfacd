"""The WebSocket: frames, lanes, memory of a connection, and what is refused."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from itertools import groupby

import openai
import pytest
from openai.types.responses.response_steer_failed_event import ResponseSteerFailedEvent
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from atem.server import connection
from tests.server.running import (
    HELLO,
    LONG,
    MODEL,
    THOUGHT,
    answered,
    call,
    paced,
    running,
    types,
    wait,
)


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO) as server:
        yield server


def opened(server, **options):
    return connect(server.url.replace("http", "ws") + "/responses", proxy=None, **options)


def ask(socket, said="Hi", **fields):
    socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": said, **fields}))


def told(events):
    """Their types; how many deltas there are of a text depends on who was quicker."""
    return [name for name, _ in groupby(types(events))]


def test_frames_are_the_events_of_a_stream_and_numbers_begin_again_with_each_answer(served):
    with opened(served) as socket:
        for _ in range(2):
            ask(socket)
            frames = answered(socket)
            assert told(frames) == told(served.events())
            assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))


WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
OF_ITS_OWN = ("id", "call_id", "created_at", "completed_at")


@pytest.mark.parametrize(
    ("kinds", "turn"),
    [
        ("message", HELLO),
        ("reasoning message", THOUGHT + HELLO),
        ("reasoning function_call", THOUGHT + call("weather", city="Vigo")),
    ],
    ids=["text", "thought", "call"],
)
def test_a_frame_a_stream_and_an_answer_in_one_piece_end_with_the_same_object(kinds, turn):
    asked = {"tools": [WEATHER], "metadata": {"a": "b"}, "max_output_tokens": 500}
    with running(lambda request: turn) as server, opened(server) as socket:
        ask(socket, **asked)
        framed = answered(socket)[-1]["response"]
        streamed = server.events(**asked)[-1]["response"]
        whole = server.create(**asked).json()
    assert whole["status"] == "completed"
    assert [item["type"] for item in whole["output"]] == kinds.split()
    assert common(framed) == common(streamed) == common(whole)


def common(response):
    """A response without ids and times."""
    output = [
        {key: value for key, value in item.items() if key not in OF_ITS_OWN}
        for item in response["output"]
    ]
    shared = {key: value for key, value in response.items() if key not in OF_ITS_OWN}
    return {**shared, "output": output}


# openai opens its connection without a context, which websockets 17 finds old-fashioned.
@pytest.mark.filterwarnings("ignore:connect.. must be used as a context:DeprecationWarning")
def test_the_openai_sdk_connects_and_reads(served):
    client = openai.OpenAI(base_url=served.url, api_key="none")
    with client, client.responses.connect() as connection:
        connection.response.create(model=MODEL, input="Hi")
        for event in connection:
            if event.type == "response.completed":
                assert event.response.output_text == "Hello there."
                break


def test_a_connection_remembers_its_responses_though_they_are_not_stored(served):
    with opened(served) as socket:
        ask(socket, generate=False, store=False)
        warm = answered(socket)[-1]["response"]
        assert warm["output"] == []
        ask(socket, previous_response_id=warm["id"], store=False)
        assert answered(socket)[-1]["type"] == "response.completed"
    assert served.http.get(f"/v1/responses/{warm['id']}").status_code == 404
    with opened(served) as another:
        ask(another, previous_response_id=warm["id"])
        (refused,) = answered(another)
    assert (refused["status"], refused["error"]["code"]) == (400, "previous_response_not_found")


def test_lanes_go_side_by_side_and_each_frame_names_its_lane():
    with running(paced(lambda request: HELLO, rate=100)) as server, opened(server) as socket:
        for lane in ("a", "b"):
            ask(socket, stream_id=lane)
        frames = [*answered(socket), *answered(socket)]
    lanes = [frame["stream_id"] for frame in frames]
    assert set(lanes) == {"a", "b"}
    assert lanes != sorted(lanes)


def test_requests_of_one_lane_are_answered_one_after_another(served):
    with opened(served) as socket:
        ask(socket)
        ask(socket)
        first, second = answered(socket), answered(socket)
    assert len({frame["response"]["id"] for frame in first if "response" in frame}) == 1
    assert first[0]["response"]["id"] != second[0]["response"]["id"]


@pytest.mark.parametrize(
    ("frame", "status", "param"),
    [
        ("no json", 400, None),
        ("{}", 400, "type"),
        ('{"type": "session.update"}', 400, "type"),
        ('{"type": "response.create"}', 400, "model"),
        ('{"type": "response.create", "model": "other", "input": "x"}', 404, "model"),
        ('{"type": "response.create", "stream_id": 5}', 400, "stream_id"),
        (
            '{"type": "response.create", "model": "scripted", "input": "x", "background": true}',
            400,
            "background",
        ),
    ],
)
def test_what_is_wrong_with_a_frame_is_told_and_the_connection_goes_on(
    served, frame, status, param
):
    with opened(served) as socket:
        socket.send(frame)
        refused = json.loads(socket.recv(10))
        assert (refused["type"], refused["status"]) == ("error", status)
        assert refused["error"]["param"] == param
        ask(socket)
        assert answered(socket)[-1]["type"] == "response.completed"


def test_steering_is_declined_in_its_own_words(served):
    with opened(served) as socket:
        socket.send('{"type": "response.steer", "previous_response_id": "r", "input": "x"}')
        declined = json.loads(socket.recv(10))
    assert declined["type"] == "response.steer.failed"
    assert declined["error"]["code"] == "steering_not_supported"
    assert declined["steer"] == {"previous_response_id": "r", "input": "x"}


def test_a_steer_that_names_nothing_is_refused(served):
    with opened(served) as socket:
        socket.send('{"type": "response.steer", "input": "x"}')
        refused = json.loads(socket.recv(10))
    assert (refused["type"], refused["error"]["param"]) == ("error", "previous_response_id")


def test_steering_is_declined_in_the_lane_of_the_response_and_that_goes_on():
    with running(paced(lambda request: HELLO, rate=50)) as server, opened(server) as socket:
        ask(socket, stream_id="a")
        steered = json.loads(socket.recv(10))["response"]["id"]
        frame = {"type": "response.steer", "previous_response_id": steered, "input": "no, wait"}
        socket.send(json.dumps(frame))
        frames = answered(socket)
    (declined,) = [frame for frame in frames if frame["type"] == "response.steer.failed"]
    ResponseSteerFailedEvent.model_validate(declined, strict=True)
    assert declined["stream_id"] == "a"
    assert frames[-1]["type"] == "response.completed"


def test_a_connection_may_have_any_number_of_lanes_one_after_another(served, monkeypatch):
    monkeypatch.setattr(connection, "LANES", 2)
    with opened(served) as socket:
        for lane in "abcd":
            ask(socket, stream_id=lane)
            assert {frame["stream_id"] for frame in answered(socket)} == {lane}


def test_too_many_lanes_at_once_and_too_many_requests_of_a_lane_are_refused(monkeypatch):
    monkeypatch.setattr(connection, "LANES", 1)
    monkeypatch.setattr(connection, "WAITING", 1)
    with running(paced(lambda request: HELLO, first=0.3)) as server, opened(server) as socket:
        ask(socket, stream_id="a")
        while json.loads(socket.recv(10))["type"] != "response.in_progress":
            pass
        ask(socket, stream_id="b")
        assert refusal(socket) == (429, "b")
        ask(socket, stream_id="a")
        ask(socket, stream_id="a")
        assert refusal(socket) == (429, "a")
        for _ in range(2):
            assert answered(socket)[-1]["type"] == "response.completed"


def test_what_waits_on_a_connection_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(connection, "ROOM", 5000)
    with running(paced(lambda request: HELLO, first=0.3)) as server, opened(server) as socket:
        ask(socket, stream_id="a")
        while json.loads(socket.recv(10))["type"] != "response.in_progress":
            pass
        ask(socket, "x" * 6000, stream_id="a")  # one alone may have any size
        ask(socket, stream_id="a")
        assert refusal(socket) == (429, "a")
        for _ in range(2):
            assert answered(socket)[-1]["type"] == "response.completed"
        ask(socket, stream_id="a")
        assert answered(socket)[-1]["type"] == "response.completed"


def test_a_client_that_sends_bytes_is_told_to_send_text(served):
    with opened(served) as socket:
        socket.send(b"{}")
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
    assert closed.value.rcvd.code == 1003


def test_a_frame_that_is_too_large_closes_the_connection_with_1009_and_harms_no_other():
    with running(lambda request: HELLO, max_body=10_000) as server, opened(server) as other:
        with opened(server) as socket:
            ask(socket, "x" * 20_000)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(10)
        assert closed.value.rcvd.code == 1009
        ask(other, "x" * 5_000)
        assert answered(other)[-1]["type"] == "response.completed"
        assert len(server.engine.requests) == 1


def test_a_frame_that_is_small_only_until_it_is_unpacked_is_too_large():
    with running(lambda request: HELLO, max_body=10_000) as server, opened(server) as socket:
        assert packed(socket)
        ask(socket, "x" * 1_000_000)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("compression", ["deflate", None])
def test_frames_are_packed_where_the_client_offers_it_and_say_the_same(served, compression):
    with opened(served, compression=compression) as socket:
        assert packed(socket) is (compression == "deflate")
        for said in ("Hi", "x" * 50_000):
            ask(socket, said)
            frames = answered(socket)
            assert told(frames) == told(served.events())
            assert frames[-1]["response"]["output"][0]["content"][0]["text"] == "Hello there."


def packed(socket):
    """Whether both sides agreed on permessage-deflate."""
    agreed = socket.response.headers.get("sec-websocket-extensions", "")
    return agreed.startswith("permessage-deflate")


def refusal(socket):
    """Of the next frame that is one."""
    while (frame := json.loads(socket.recv(10)))["type"] != "error":
        pass
    return frame["status"], frame["stream_id"]


def test_an_old_connection_answers_what_was_asked_takes_no_more_and_closes_with_1012(monkeypatch):
    monkeypatch.setattr(connection, "MAX_SECONDS", 0.2)
    with running(paced(lambda request: HELLO, first=0.6)) as server, opened(server) as socket:
        ask(socket)
        time.sleep(0.3)
        ask(socket)
        frames = answered(socket)
        assert frames[-1]["error"]["code"] == "websocket_connection_limit_reached"
        assert answered(socket)[-1]["type"] == "response.completed"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
    assert closed.value.rcvd.code == 1012


def test_a_client_that_takes_nothing_is_left():
    server = running(lambda request: HELLO, slow_reader_seconds=0.2)
    with server as served, opened(served, **SLOW) as socket:
        for lane in "abcd":  # the response object repeats its user, three times a response
            ask(socket, stream_id=lane, user="x" * 3_000_000)
        time.sleep(1)
        with pytest.raises(ConnectionClosed):
            read_all(socket)
        assert not served.service.replies


SLOW = {"max_queue": 1, "max_size": None, "compression": None, "close_timeout": 1}


def read_all(socket):
    for _ in range(4):
        answered(socket)


def test_a_client_that_leaves_ends_its_generation():
    with running(paced(lambda request: LONG, rate=50)) as server:
        with opened(server) as socket:
            ask(socket)
            while json.loads(socket.recv(10))["type"] != "response.output_text.delta":
                pass
            assert server.service.slots.running == 1
        assert wait(lambda: server.service.slots.running == 0, 2)


def test_without_a_key_the_handshake_is_refused_with_a_status():
    key = "a-key-of-a-client"
    with running(lambda request: HELLO, api_key=(key,)) as server:
        with pytest.raises(InvalidStatus) as refused:
            opened(server)
        assert refused.value.response.status_code == 401
        with opened(server, additional_headers={"authorization": f"Bearer {key}"}) as socket:
            ask(socket)
            assert answered(socket)[-1]["type"] == "response.completed"


def test_switched_off_it_is_refused_and_plain_requests_are_answered():
    with running(lambda request: HELLO, websocket=False) as server:
        with pytest.raises(InvalidStatus) as refused:
            opened(server)
        assert 400 <= refused.value.response.status_code < 500
        assert server.create().status_code == 200


def test_a_strangers_web_page_may_not_connect(served):
    with pytest.raises(InvalidStatus) as refused:
        opened(served, origin="https://evil.example")
    assert refused.value.response.status_code == 403


def test_a_refused_handshake_is_a_request_with_an_id_a_line_in_the_log_and_a_count(caplog):
    with (
        caplog.at_level(logging.INFO),
        running(lambda request: HELLO, api_key=("k" * 20,)) as server,
    ):
        response = handshake(server, additional_headers={"x-request-id": "abc-1"})
        metrics = server.http.get("/metrics", headers={"x-api-key": "k" * 20}).text
    assert response.status_code == 401
    assert response.headers["x-request-id"] == "abc-1"
    assert response.headers["openai-processing-ms"].isdigit()
    assert response.headers["x-should-retry"] == "false"
    assert json.loads(response.body)["error"]["code"] == "invalid_api_key"
    assert 'atem_requests_total{route="/v1/responses",status="401"} 1.0' in metrics
    (line,) = (each for each in logged(caplog, "atem.server.access") if "WebSocket" in each)
    assert re.fullmatch(r"WebSocket /v1/responses 401 \d\.\d{3}s abc-1", line)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_handshake_while_the_server_ends_is_told_when_to_come_again():
    with running(paced(lambda request: HELLO, first=0.5)) as server, opened(server) as socket:
        ask(socket)
        socket.recv(10)
        ending = asyncio.run_coroutine_threadsafe(server.service.drain(10), server.loop())
        assert wait(lambda: server.service.draining)
        response = handshake(server)
        assert ending.result(10) is None
    assert response.status_code == 503
    assert response.headers["retry-after"].isdigit()
    assert "x-should-retry" not in response.headers


def test_a_handshake_has_an_id_and_its_line_when_the_connection_ends(caplog):
    with caplog.at_level(logging.INFO), running(lambda request: HELLO) as server:
        with opened(server) as socket:
            found = socket.response.headers["x-request-id"]
        path = server.url.replace("http", "ws") + "/nothing"
        with pytest.raises(InvalidStatus), connect(path, proxy=None):
            pass
    lines = [re.sub(r"\d\.\d{3}s", "-", each) for each in logged(caplog, "atem.server.access")]
    assert lines[0] == f"WebSocket /v1/responses 101 - {found}"
    assert lines[1].startswith("WebSocket none 403 - req_")


def test_what_breaks_at_a_handshake_is_a_500(caplog, monkeypatch):
    with running(lambda request: HELLO) as server:
        monkeypatch.setattr(server.service, "admit", lambda headers: 1 / 0)
        response = handshake(server)
    assert response.status_code == 500
    assert json.loads(response.body)["error"]["type"] == "server_error"
    assert response.headers["x-request-id"] in "".join(logged(caplog, "atem.server"))


def handshake(server, **options):
    """The answer that refuses it."""
    with pytest.raises(InvalidStatus) as refused:
        opened(server, **options)
    return refused.value.response


def logged(caplog, name):
    return [each.getMessage() for each in caplog.records if each.name == name]


def test_a_server_that_ends_lets_an_answer_finish_and_closes_with_1012():
    with running(paced(lambda request: HELLO, rate=40)) as server, opened(server) as socket:
        ask(socket)
        socket.recv(10)
        server.call(server.service.drain, 10)
        assert answered(socket)[-1]["type"] == "response.completed"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
    assert closed.value.rcvd.code == 1012
