"""A real server on loopback, with a model that writes what a test tells it.

Rules: uvicorn and sockets, as in production; memory for a store unless a test
says otherwise.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

import httpx2

from atem.server.app import create_app
from atem.server.serving import Server, config_of, listen
from atem.server.settings import Settings
from atem.testing.script_file import PacedEngine
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import THOUGHT, block, call, invoke

__all__ = ["THOUGHT", "block", "call", "invoke"]

MODEL = "scripted"
HELLO = " to=user<|message|>Hello there.<|eot|>"
LONG = " to=user<|message|>" + "word " * 2000 + "<|eot|>"
BODY = '{"model": "scripted", "input": "Hi", "stream": true}'


class Running:
    """A server and a client of it."""

    def __init__(self, app, server, port, engine):
        self.app = app
        self.loop = lambda: server._loop
        self.engine = engine
        self.service = app.state.service
        self.port = port
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"
        self.http = httpx2.Client(base_url=self.root, timeout=20, trust_env=False)

    def call(self, function, *arguments):
        """Run a coroutine function on the server's loop; what it returns."""
        return asyncio.run_coroutine_threadsafe(function(*arguments), self.loop()).result(20)

    def create(self, said="Hi", **fields):
        return self.http.post("/v1/responses", json={"model": MODEL, "input": said, **fields})

    def events(self, said="Hi", **fields):
        """The events of a stream, each checked to be as it must be on the wire."""
        body = {"model": MODEL, "input": said, "stream": True, **fields}
        with self.http.stream("POST", "/v1/responses", json=body) as answer:
            assert answer.status_code == 200, answer.read()
            return read_events(answer.read())


def read_events(raw):
    blocks = raw.decode("utf-8").split("\n\n")
    assert blocks.pop() == ""
    return [read_event(block) for block in blocks]


def read_event(block):
    name, data = block.split("\n")
    event = json.loads(data.removeprefix("data: "))
    assert name == f"event: {event['type']}"
    return event


def answered(socket):
    """The frames of one answer over a WebSocket."""
    frames = []
    while not frames or frames[-1]["type"] not in ("response.completed", "error"):
        frames.append(json.loads(socket.recv(10)))
    return frames


def types(events):
    """Their types, a run of deltas as one: how many tokens share one is a matter of speed."""
    kinds = [event["type"].removeprefix("response.") for event in events]
    return [
        kind
        for kind, before in zip(kinds, [None, *kinds], strict=False)
        if kind != before or not kind.endswith(".delta")
    ]


def paced(turns, *, rate=0, first=0.0):
    """An engine that writes so many tokens a second, the first after a while."""
    return PacedEngine(ScriptedEngine(turns), 1 / rate if rate else 0.0, first)


class Broken(ScriptedEngine):
    """Writes some tokens and then raises."""

    def __init__(self, error):
        super().__init__(lambda request: LONG)
        self.error = error

    def generate(self, request):
        steps = super().generate(request)
        for _ in range(20):
            yield next(steps)
        raise self.error


class Watched(ScriptedEngine):
    """Notes when a generation is closed."""

    def __init__(self):
        super().__init__(lambda request: LONG)
        self.closed = []
        self.steps = 0

    def generate(self, request):
        try:
            for step in super().generate(request):
                time.sleep(0.005)
                self.steps += 1
                yield step
        finally:
            self.closed.append(time.monotonic())


@contextmanager
def running(turns, **settings):
    engine = turns if hasattr(turns, "generate") else ScriptedEngine(turns)
    settings = {"store": "memory", "running": 8, **settings}
    store = settings.pop("store") if not isinstance(settings["store"], str) else None
    app = create_app(engine, Settings(**settings), store=store)
    server = Server(config_of(app, app.state.service.settings), app.state.service)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        wait(lambda: server.started or not thread.is_alive())
        served = Running(app, server, listening.getsockname()[1], engine)
        try:
            yield served
        finally:
            served.http.close()
            server.should_exit = True
            thread.join(20)
    assert not thread.is_alive()


def wait(true, seconds=10.0):
    """Wait until something is so; whether it is."""
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.005)
    return true()


def raw_request(server, body=BODY, path="/v1/responses", read=True):
    """A request on a socket of its own; the connection is open and some of the answer has come."""
    link = socket.create_connection(("127.0.0.1", server.port), 10)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    link.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    if read:
        assert b"200 OK" in link.recv(4096)
    return link


def follow(server, response_id, after=None):
    query = {"stream": "true"} | ({} if after is None else {"starting_after": after})
    answered = server.http.get(f"/v1/responses/{response_id}", params=query)
    assert answered.status_code == 200, answered.text
    return read_events(answered.content)


def status(server, response_id):
    return server.http.get(f"/v1/responses/{response_id}").json()["status"]


def ended(server, response_id):
    assert wait(lambda: status(server, response_id) not in ("queued", "in_progress"))
    return server.http.get(f"/v1/responses/{response_id}").json()
