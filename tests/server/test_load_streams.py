"""Hundreds of live streams at once, read as they come, and not read at all.

Rules: clients and server are processes of their own where they share the work. No time is
asserted: the machine may have more to do. Memory is the kernel's figure, of the whole process.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atem.engine import Step
from atem.server.serving import listen
from atem.testing.scripted import ScriptedEngine
from tests.bench.serve.process import use
from tests.server.running import BODY, running, wait

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, of Linux"),
]

BENCH = Path(__file__).parents[1] / "bench" / "serve"

STREAM_KIB = 512
"""A stream that is read: 65 to 120 seen, and its parser, its events and its task are in it."""

UNREAD_KIB = 1024
"""A stream that nobody reads: 200 to 270 seen, with the thread of its engine; its text, its
events and what a connection holds are in it."""

UNREAD_STEPS = 4000
"""Tokens of a stream that nobody reads: 765 seen, with 200 bytes in each and several bounds one
behind the other. Without any an engine goes on writing."""


def test_streams_at_once_are_complete_without_a_gap_and_cost_a_bounded_amount_each(
    record_property,
):
    """responses.md 2: 256 streams of 50 tokens a second, each the script's text."""
    command = [sys.executable, str(BENCH), "--streams", "256", "--tokens", "100"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=55, check=True)
    told = json.loads(ran.stdout)
    record_property("p99 of a token's delay, ms", told["p99"])  # it depends on the machine
    assert (told["complete"], told["faults"]) == (256, [])
    assert told["each"] < STREAM_KIB


WORD = 39 * "word " + "\n"
"""Long, so that buffers are soon full."""


class Endless(ScriptedEngine):
    """Writes as fast as it may and never ends by itself; how much each generation wrote."""

    def __init__(self):
        super().__init__(lambda request: " to=user<|message|><|eot|>")
        self.written, self.closed = [], []

    def generate(self, request):
        *opened, _ = super().generate(request)
        return self._on(opened, Step(opened[0].ids[:1], WORD))

    def _on(self, opened, word):
        number = len(self.written)
        self.written.append(0)
        try:
            yield from opened
            while True:
                self.written[number] += 1
                yield word
        finally:
            self.closed.append(number)


def unread(server):
    """A stream whose head alone is read; a small buffer, so that the rest stays with the server."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", server.port))
    link.settimeout(20)
    head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    link.sendall(f"{head}content-length: {len(BODY)}\r\n\r\n{BODY}".encode())
    return link


def settled(engine, seconds=40):
    """Wait until nothing more is written; whether that came."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        before = sum(engine.written)
        time.sleep(1)
        if sum(engine.written) == before:
            return True
    return False


@pytest.fixture
def small_buffers(monkeypatch):
    """The server's sockets hold little, as behind a slow network.

    The kernel would let each hold megabytes, all of which an engine would have to write first.
    """

    def listening(*address):
        link = listen(*address)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        return link

    monkeypatch.setattr("tests.server.running.listen", listening)


@pytest.fixture
def streams():
    """As many as there may be open files for, at both ends of each: 500."""
    streams = 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * streams + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{hard} files may be open at once (ulimit -Hn); {wanted} are needed")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield streams
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("small_buffers")
def test_live_streams_that_nobody_reads_hold_their_engine_up_and_cost_a_bounded_amount(streams):
    engine = Endless()
    with running(engine, running=streams, slow_reader_seconds=600) as server:
        with unread(server) as first:
            assert first.recv(12).endswith(b"200")
            assert wait(lambda: engine.written)
        assert wait(lambda: engine.closed)
        gc.collect()
        before = use(os.getpid()).now
        links = [unread(server) for _ in range(streams)]
        assert all(link.recv(12).endswith(b"200") for link in links)
        assert settled(engine)
        each = 1024 * (use(os.getpid()).now - before) / streams
        assert server.service.slots.running == streams
        assert len(engine.closed) == 1
        assert max(engine.written) < UNREAD_STEPS
        assert each < UNREAD_KIB
        for link in links:
            link.close()
        assert wait(lambda: len(engine.closed) == streams + 1, 30)
        assert wait(lambda: server.service.slots.running == 0)
