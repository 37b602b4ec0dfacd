"""Many readers of one background response, who wait for it or don't read what comes.

Rules: the server is the command itself, with a script for an engine and its own store. Idle readers
wait for a first token that doesn't come; slow ones take nothing of a log that is far longer than
what a connection holds.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

from plan import END, HEADER, words
from process import HERE, Use, free_port, python, serving, use

SCRIPTS = {"idle": {"first_token_seconds": 600}, "slow": {}}
WAITS = 10.0
"""Seconds that the readers stay."""


class Waiting(NamedTuple):
    """What readers of a kind cost their server."""

    name: str
    readers: int
    open: int
    before: Use
    during: Use
    after: Use

    @property
    def each(self) -> float:
        """KiB for each of them."""
        return 1024 * (self.during.peak - self.before.now) / self.readers

    def line(self) -> str:
        """In one line."""
        cpu = (self.during.cpu - self.before.cpu) / WAITS
        return (
            f"{self.open}/{self.readers} {self.name} readers of a background response: "
            f"{self.before.now:.0f}-{self.during.peak:.0f}-{self.after.now:.0f} MiB, "
            f"{self.each:.0f} KiB each, {100 * cpu:.0f} % of a core"
        )


def waiting(kind: str, readers: int) -> Waiting:
    """Readers of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        port, script = free_port(), Path(folder, "script.json")
        write = HEADER + "".join(words(4000)) + END
        script.write_text(json.dumps({**SCRIPTS[kind], "turns": [{"write": write}]}))
        options = ["--port", f"{port}", "--log-level", "error", "--store-path", f"{folder}/r.db"]
        command = ("-m", "atem.cli.serve", "--engine", f"scripted:{script}", *options)
        with serving(port, *command) as pid:
            path = f"/v1/responses/{begin(port, wait=kind == 'slow')}"
            before = use(pid)
            asked = json.dumps({"port": port, "path": path, "readers": readers, "waits": WAITS})
            clients = subprocess.Popen(
                python(str(HERE / "readers.py"), asked), stdout=subprocess.PIPE
            )
            with clients:
                opened = json.loads(clients.stdout.readline())["open"]  # type: ignore[union-attr]
                time.sleep(WAITS - 1)
                during = use(pid)
            time.sleep(2)
            return Waiting(kind, readers, opened, before, during, use(pid))


def begin(port: int, *, wait: bool) -> str:
    """Ask for a background response, and wait for its end if asked to; its id."""
    address = f"http://127.0.0.1:{port}/v1/responses"
    body = json.dumps({"model": "scripted", "input": "Go.", "background": True}).encode()
    asked = Request(address, body, {"content-type": "application/json"})
    made = json.load(urlopen(asked))["id"]
    while wait and json.load(urlopen(f"{address}/{made}"))["status"] != "completed":
        time.sleep(0.2)
    return str(made)
