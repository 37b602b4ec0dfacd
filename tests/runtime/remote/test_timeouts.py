"""How long a server is waited for: waits between tries, silence, bytes that lead to nothing."""

from __future__ import annotations

import email.utils
import socket
import time

import pytest

from atem.errors import RemoteError
from atem.runtime.remote import Patience, RemoteEngine
from tests.runtime.remote.asking import ask, engine, hasty, text_of
from tests.runtime.remote.wires import head, text_event, wires


def test_a_silent_server_is_given_up_after_the_timeout():
    with (
        wires([head(), None]) as server,
        engine(server, timeout=0.2) as remote,
        pytest.raises(RemoteError, match="sent nothing for too long") as caught,
    ):
        list(remote.generate(ask()))
    assert caught.value.late


@pytest.mark.parametrize("begin", [b"", head(), head("500 Oops")[:-2]])
def test_silence_is_told_from_trickling(begin):
    with (
        wires([begin, None]) as server,
        engine(server, timeout=0.2) as remote,
        pytest.raises(RemoteError, match="sent nothing for too long"),
    ):
        list(remote.generate(ask()))


def test_a_connection_that_is_not_made_in_time_is_tried_again():
    patience, waits = hasty()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(RemoteError, match="can't be reached in time"):
            RemoteEngine(url, timeout=0.2, retries=patience)
    assert len(waits) == 2


def trickling(part, begin):
    yield begin
    while True:
        yield part
        time.sleep(0.02)


TRICKLES = {
    "headers": (b"a", b"HTTP/1.1 200 OK\r\nX-A: "),
    "interim answers": (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "another kind": (b" ", head(kind="application/json")),
    "a refusal": (b" ", head("500 Oops", "application/json")),
}


@pytest.mark.parametrize("trickle", TRICKLES.values(), ids=TRICKLES)
def test_what_comes_before_the_first_event_has_a_time_as_a_whole(trickle):
    with (
        wires(trickling(*trickle)) as server,
        engine(server, timeout=0.3) as remote,
        pytest.raises(RemoteError, match=r"was not ready|HTTP 500"),
    ):
        list(remote.generate(ask()))


@pytest.mark.parametrize("part", [b":\n\n", b"data: {}\n\n", b"data: "])
def test_the_answer_to_a_probe_has_a_time_as_a_whole(part):
    with (
        wires(probes=[trickling(part, head())]) as server,
        pytest.raises(RemoteError, match="was not ready"),
    ):
        RemoteEngine(server.url, timeout=0.3, retries=0)


def test_a_model_list_has_a_time_as_a_whole():
    get = {"/v1/models": trickling(b" ", head(kind="application/json"))}
    with wires(get=get) as server, pytest.raises(RemoteError, match="was not ready"):
        RemoteEngine(server.url, timeout=0.3, retries=0)


def test_an_answers_events_may_take_longer_than_the_timeout():
    def events():
        yield head()
        for _ in range(8):
            time.sleep(0.05)
            yield b":\n\n"
        yield text_event("late", "stop")

    with wires(events()) as server, engine(server, timeout=0.3) as remote:
        assert text_of(remote.generate(ask())) == "late"


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("7", 7.0),
        ("0", 0.5),
        ("999999", 30.0),
        ("9" * 400, 30.0),
        (email.utils.formatdate(1_000_012, usegmt=True), 12.0),
        (email.utils.formatdate(900_000, usegmt=True), 0.5),
        ("Mon, 01 Jan 99999 00:00:00 GMT", 0.5),
        ("soon", 0.5),
        ("-5", 0.5),
        ("٣", 0.5),
    ],
)
def test_retry_after_is_obeyed_up_to_a_limit(asked, waited):
    patience = Patience(clock=lambda: 1_000_000.0, chance=lambda: 1.0)
    assert patience.wait(0, asked) == waited


def test_waits_grow_are_spread_and_have_a_limit():
    low, high = Patience(chance=lambda: 0.0), Patience(chance=lambda: 1.0)
    assert [low.wait(n, None) for n in range(3)] == [0.25, 0.5, 1.0]
    assert [high.wait(n, None) for n in range(3)] == [0.5, 1.0, 2.0]
    assert high.wait(10_000, None) == 30.0
