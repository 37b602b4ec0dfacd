"""A server made of bytes: whatever a test wants on the wire, exactly, and what came in.

Rules: one connection, one answer, then it is closed. Nothing is interpreted.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from dataclasses import dataclass, field

MODELS = {"object": "list", "data": [{"id": "tiny", "owned_by": "vllm", "max_model_len": 512}]}


def head(status="200 OK", kind="text/event-stream", **headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(body, status="200 OK", kind="text/event-stream", **headers):
    """An answer that is over when the connection is."""
    return [head(status, kind, **headers) + body]


def chunked(parts):
    """An answer in HTTP chunks, which keep the boundaries of ``parts``."""
    frames = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part]
    return [head(Transfer_Encoding="chunked") + b"".join(frames) + b"0\r\n\r\n"]


def as_json(value, status="200 OK", **headers):
    return whole(json.dumps(value).encode(), status, "application/json", **headers)


def event(value, end="\n"):
    data = value if isinstance(value, str) else json.dumps(value)
    return f"data: {data}{end}{end}".encode()


def text_event(text="", finish=None, **more):
    return event({"choices": [{"index": 0, "text": text, "finish_reason": finish}], **more})


DONE = event("[DONE]")
PROBED = whole(text_event("<|message|>") + text_event("", "length") + DONE)
COUNTED = whole(
    text_event("x", "length")
    + event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    + DONE
)


@dataclass
class Wires:
    """Answers GET /v1/models and the probe; ``answers`` are taken in turn for later requests.

    An answer is a list of byte strings; None in it waits until ``go`` is set.
    """

    answers: list = field(default_factory=list)
    get: dict = field(default_factory=lambda: {"/v1/models": as_json(MODELS)})
    probes: list = field(default_factory=lambda: [PROBED])
    requests: list = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    tls: object = None
    url: str = ""

    def posted(self):
        return [json.loads(body) for line, _, body in self.requests if line.startswith("POST")]

    def serve(self, plain):
        with contextlib.suppress(OSError), self.secured(plain) as connection:
            line, headers, body = _request(connection)
            self.requests.append((line, headers, body))
            for part in self.answer(line):
                if part is None:
                    self.go.wait(20)
                else:
                    connection.sendall(part)

    def secured(self, connection):
        return self.tls.wrap_socket(connection, server_side=True) if self.tls else connection

    def answer(self, line):
        method, path, _ = line.split(" ")
        if method == "GET":
            return self.get.get(path) or as_json({"error": "no such page"}, "404 Not Found")
        left = self.probes or self.answers
        return left.pop(0) if left else as_json({"error": "nothing left"}, "500 Oops")


def _request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or _gone()
    start, _, body = data.partition(b"\r\n\r\n")
    line, *headers = start.decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in headers)}
    while len(body) < int(fields.get("content-length", 0)):
        body += connection.recv(65536) or _gone()
    return line, fields, body


def _gone():
    raise ConnectionResetError


@contextlib.contextmanager
def wires(*answers, **fields):
    """A running :class:`Wires` on loopback."""
    server = Wires(list(answers), **fields)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.url = f"http{'s' if server.tls else ''}://127.0.0.1:{listening.getsockname()[1]}"
        threading.Thread(target=_accept, args=(listening, server), daemon=True).start()
        try:
            yield server
        finally:
            server.go.set()
            # A blocked accept() isn't woken by close() alone.
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)


def _accept(listening, server):
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=server.serve, args=(connection,), daemon=True).start()
