"""A real ``atem-serve`` on loopback that plays a script, and a wire to it that is listened to.

Rules: the server is the command, in a process of its own, with nothing replaced.
Clients reach it through a relay that passes on every byte, keeps the requests,
and can answer one itself: what a working server can't be brought to say.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from tests.server.process import Process, command, environment

CHUNK = 1 << 16


class Asked(NamedTuple):
    """One request of a client's."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)


class Server:
    """``atem-serve --engine scripted:FILE``, up when this is made; ``turns`` are of the script."""

    def __init__(self, folder, turns, *options, script=(), key=None, answers=()):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "script.json"
        file.write_text(json.dumps({"turns": list(turns), **dict(script)}))
        self.options = ("--engine", f"scripted:{file}", *options)
        self.key = {} if key is None else {"ATEM_SERVE_API_KEY": key}
        self._process = Process(*self.options, "--store", "memory", **self.key)
        self.own_port = urlsplit(self._process.url).port
        self.relay = Relay(self.own_port, answers)
        self.port = self.relay.port

    @property
    def lines(self):
        """What the server has logged so far."""
        return self._process.lines

    def set_up(self, client):
        """What ``--print-client`` prints for a client of this server."""
        words = [*self.options, "--port", str(self.port), "--print-client", client]
        ran = subprocess.run(
            command(*words), env=environment(**self.key), capture_output=True, text=True, check=True
        )
        return ran.stdout

    @property
    def asked(self):
        """The requests so far, in the order they came in."""
        return self.relay.requests()

    def bodies(self, path):
        """The bodies of the posts to ``path``."""
        return [
            each.body for each in self.asked if each.path.partition("?")[0] == path and each.raw
        ]

    def terminate(self):
        self._process.process.send_signal(signal.SIGTERM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.__exit__()
        self.relay.close()


class Relay:
    """A port of loopback that stands for another one.

    ``answers`` are raw HTTP answers: each takes the place of the server's own
    for one connection, from the first on; None lets one through.
    """

    def __init__(self, target, answers=()):
        self._target = target
        self._answers = list(answers)
        self._heard = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def requests(self):
        return [asked for heard in list(self._heard) for asked in _requests(bytes(heard))]

    @property
    def upgrades(self):
        """How many connections became WebSockets, or asked to."""
        return sum(asked.headers.get("upgrade") == "websocket" for asked in self.requests())

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            heard = bytearray()
            self._heard.append(heard)
            answer = self._answers.pop(0) if self._answers else None
            work = (
                (self._answered, client, heard, answer) if answer else (self._passed, client, heard)
            )
            threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _answered(self, client, heard, answer):
        with client:
            while not _requests(bytes(heard)):
                piece = client.recv(CHUNK)
                if not piece:
                    return
                heard += piece
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            while client.recv(CHUNK):
                pass

    def _passed(self, client, heard):
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_pipe, args=(server, client, bytearray()), daemon=True)
        back.start()
        _pipe(client, server, heard)
        back.join()
        client.close()
        server.close()


def _pipe(source, target, heard):
    """Pass on until one end is closed, and say so to the other."""
    with suppress(OSError):
        while piece := source.recv(CHUNK):
            heard += piece
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _requests(heard):
    """The whole requests at the beginning of what a client sent; an upgrade is the last."""
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(heard)
    found, head, body = [], None, bytearray()
    while True:
        event = reader.next_event()
        if isinstance(event, h11.Request):
            head, body = event, bytearray()
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            found.append(_asked(head, bytes(body)))
            if "upgrade" in found[-1].headers:  # what follows is no HTTP
                return found
            reader.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            reader.send(h11.EndOfMessage())
            if reader.our_state is not h11.DONE:
                return found
            if reader.their_state is h11.DONE:
                reader.start_next_cycle()
        else:
            return found


def _asked(head, body):
    headers = {name.decode(): value.decode() for name, value in head.headers}
    return Asked(head.method.decode(), head.target.decode(), headers, body)


def http_answer(status, body, **headers):
    """A raw answer with a JSON body."""
    raw = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Status", "content-type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"content-length: {len(raw)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + raw
