"""How streams end: by themselves, by a failure, by a client that left, by a server that ends."""

from __future__ import annotations

import socket
import time

import openai
import pytest

from atem.engine import Step
from atem.errors import EngineError
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    BODY,
    HELLO,
    LONG,
    MODEL,
    Broken,
    Watched,
    paced,
    raw_request,
    read_events,
    running,
    types,
    wait,
)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", BODY),
        (
            "/v1/chat/completions",
            BODY.replace('"input": "Hi"', '"messages": [{"role": "user", "content": "Hi"}]'),
        ),
        (
            "/v1/messages",
            BODY.replace(
                '"input": "Hi"',
                '"max_tokens": 9000, "messages": [{"role": "user", "content": "Hi"}]',
            ),
        ),
    ],
)
def test_c14_c43_a_client_that_leaves_a_stream_ends_the_generation_within_200_ms(path, body):
    engine = Watched()
    with running(engine) as server:
        link = raw_request(server, body, path)
        assert wait(lambda: engine.steps > 5)
        left = time.monotonic()
        link.close()
        assert wait(lambda: engine.closed, 5)
        assert engine.closed[0] - left < 0.2
        assert wait(lambda: server.service.slots.running == 0, 1)


def test_c14_a_client_that_leaves_before_an_answer_in_one_piece_ends_the_generation():
    engine = Watched()
    with running(engine) as server:
        link = raw_request(server, BODY.replace("true", "false"), read=False)
        assert wait(lambda: engine.steps > 5)
        left = time.monotonic()
        link.close()
        assert wait(lambda: engine.closed, 5)
        assert engine.closed[0] - left < 0.2


def test_c14_a_client_that_leaves_while_it_waits_gives_its_place_back():
    engine = Watched()
    with running(engine, running=1) as server:
        first = raw_request(server)
        assert wait(lambda: engine.steps > 5)
        second = raw_request(server)
        assert wait(lambda: server.service.slots.waiting == 1)
        second.close()
        assert wait(lambda: server.service.slots.waiting == 0, 2)
        assert engine.closed == []
        first.close()
        assert wait(lambda: server.service.slots.running == 0, 2)
    assert len(engine.requests) == 1


def test_what_a_client_left_is_stored_as_cancelled_with_what_was_written():
    engine = Watched()
    with running(engine) as server:
        link = raw_request(server)
        link.recv(65536)
        assert wait(lambda: engine.steps > 30)
        (reply,) = server.service.replies
        link.close()
        assert wait(lambda: not server.service.replies, 3)
        kept = server.http.get(f"/v1/responses/{reply.id}").json()
    assert kept["status"] == "cancelled"
    assert kept["output"][0]["status"] == "incomplete"
    assert kept["output"][0]["content"][0]["text"].startswith("word ")


def test_with_on_disconnect_finish_the_response_is_written_to_its_end():
    with running(paced(lambda request: HELLO, rate=60), on_disconnect="finish") as server:
        link = raw_request(server)
        (reply,) = server.service.replies
        link.close()
        assert wait(lambda: reply.over, 5)
        assert wait(lambda: not server.service.replies)
        kept = server.http.get(f"/v1/responses/{reply.id}").json()
    assert kept["status"] == "completed"


@pytest.mark.parametrize("error", [EngineError("the device is gone"), RuntimeError("secret path")])
def test_c29_an_engine_that_breaks_off_ends_the_stream_with_response_failed(error):
    with running(Broken(error)) as server:
        events = server.events()
        assert types(events)[-1] == "failed"
        assert events[-1]["response"]["status"] == "failed"
        assert events[-1]["response"]["error"]["code"] == "server_error"
        assert "secret" not in str(events[-1])
        whole = server.create()
        assert whole.status_code == 500
        assert "secret" not in whole.text


def test_c29_steps_that_end_without_a_finish_are_a_failure_and_no_answer():
    class Ends(ScriptedEngine):
        def generate(self, request):
            yield Step(piece=" to=user<|message|>Hel")

    with running(Ends([])) as server:
        assert types(server.events())[-1] == "failed"


def test_c46_the_body_ends_at_once_after_the_last_event():
    with running(Broken(EngineError("gone"))) as server:
        link = raw_request(server)
        raw = b""
        while b"response.failed" not in raw:
            raw += link.recv(65536)
        failed = time.monotonic()
        while b"0\r\n\r\n" not in raw[-7:]:
            raw += link.recv(65536)
        assert time.monotonic() - failed < 0.2
        link.close()


@pytest.mark.parametrize("stream", [True, False])
def test_c21_an_input_that_is_too_long_is_a_400_before_anything_is_sent(stream):
    with running(ScriptedEngine(lambda request: HELLO, context=300)) as server:
        refused = server.create("word " * 2000, stream=stream)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
        assert refused.headers["x-should-retry"] == "false"


def test_with_truncation_auto_the_oldest_goes_and_a_header_says_how_many_messages():
    old = [{"role": "user", "content": "word " * 200}, {"role": "assistant", "content": "Ah."}]
    with running(ScriptedEngine(lambda request: HELLO, context=400)) as server:
        said = [*old, {"role": "user", "content": "Hi"}]
        assert server.create(said).status_code == 400
        cut = server.create(said, truncation="auto")
    assert cut.status_code == 200
    assert cut.headers["x-atem-truncated-messages"] in ("1", "2")


def test_c33_a_response_can_be_continued_as_soon_as_its_last_event_has_come():
    with running(lambda request: HELLO) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        previous = None
        with client:
            for _ in range(20):
                stream = client.responses.create(
                    model=MODEL, input="On.", previous_response_id=previous, stream=True
                )
                for event in stream:
                    if event.type == "response.completed":
                        previous = event.response.id
                        break
                stream.close()
        items = server.http.get(f"/v1/responses/{previous}").json()
    assert items["status"] == "completed"


def test_c41_a_stream_is_the_same_event_for_event_whether_read_in_bytes_or_at_once():
    with running(paced(lambda request: HELLO, rate=200)) as server:
        link = raw_request(server, read=False)
        raw = b""
        while not raw.endswith(b"0\r\n\r\n"):
            raw += link.recv(7)
        link.close()
        body = _unchunked(raw.partition(b"\r\n\r\n")[2])
        assert types(read_events(body)) == types(server.events())


def _unchunked(raw):
    body = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        body, raw = body + raw[: int(size, 16)], raw[int(size, 16) + 2 :]
    return body


def test_a_reader_that_takes_nothing_is_dropped_and_its_generation_ends():
    pieces = [Step((1,), "word " * 2000)] * 3000  # more than the buffers between them hold
    huge = [Step((1,), " to=user<|message|>"), *pieces, Step((1,), "<|eot|>", finish="stop")]
    with running(lambda request: huge, slow_reader_seconds=0.5) as server:
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(("127.0.0.1", server.port))
        head = (
            "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        )
        link.sendall(f"{head}content-length: {len(BODY)}\r\n\r\n{BODY}".encode())
        assert wait(lambda: server.service.slots.running == 1)
        (reply,) = server.service.replies
        assert wait(lambda: server.service.slots.running == 0, 15)
        assert reply.response["status"] == "cancelled"
        link.close()


def test_a_server_that_ends_takes_nothing_new_and_lets_what_runs_finish():
    with running(paced(lambda request: HELLO, rate=40)) as server:
        assert server.http.get("/ready").status_code == 200
        link = raw_request(server)
        server.service.draining = True
        assert server.http.get("/ready").status_code == 503
        refused = server.create()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["error"]["code"] == "server_is_overloaded"
        server.call(server.service.drain, 10)
        raw = b""
        while b"0\r\n\r\n" not in raw[-7:]:
            raw += link.recv(65536)
        link.close()
    assert b"event: response.completed" in raw


def test_what_has_not_finished_in_time_fails_with_response_failed():
    with running(paced(lambda request: LONG, rate=40)) as server:
        link = raw_request(server)
        server.call(server.service.drain, 0.1)
        raw = b""
        while b"0\r\n\r\n" not in raw[-7:]:
            raw += link.recv(65536)
        link.close()
    assert b"event: response.failed" in raw
    assert b"shutting down" in raw
