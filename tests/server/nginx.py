"""Replicas of atem-serve behind nginx, each a process, as examples/serve has them.

Rules: the configuration is the example's; only addresses are put into it.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.golden.expectation import ROOT
from tests.server.databases import folder
from tests.server.running import MODEL, wait

SERVE = ROOT / "examples" / "serve"
NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")


class Behind:
    """Replicas behind nginx, by their ports."""

    def __init__(self, place, port, replicas):
        self.port = port
        self.root = f"http://127.0.0.1:{port}"
        self.http = httpx2.Client(base_url=self.root, timeout=20, trust_env=False)
        self.replicas = replicas
        self._log = place / "access.log"
        self._read = 0

    def create(self, said="Hi", *, headers=None, **fields):
        body = {"model": MODEL, "input": said, **fields}
        return self.http.post("/v1/responses", json=body, headers=headers)

    def asked(self):
        """The ports of the replicas that the next request in the log was given to, in order."""
        assert wait(lambda: len(self._lines()) > self._read)
        line = self._lines()[self._read]
        self._read += 1
        return re.findall(r"127\.0\.0\.1:(\d+)", line)

    def replica_of(self, key):
        """The port of the replica that answers a key's requests."""
        answer = self.create(prompt_cache_key=key)
        assert answer.status_code == 200, answer.text
        return self.asked()[-1]

    def _lines(self):
        return self._log.read_text().splitlines()


@contextmanager
def behind_nginx(ports):
    """nginx in front of three replicas on these ports."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None or not NJS.exists():
        pytest.skip("no nginx with njs: apt-get install nginx libnginx-mod-http-js")
    with ExitStack() as stack:
        place = stack.enter_context(folder())
        place.chmod(0o755)  # its workers are other users where we are root
        port = _configure(place, ports)
        command = [nginx, "-p", place, "-c", place / "nginx.conf", "-g", "daemon off;"]
        process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        stack.callback(process.terminate)
        behind = Behind(place, port, ports)
        stack.callback(behind.http.close)
        assert wait(lambda: _listens(port)), (place / "error.log").read_text()
        yield behind


def _configure(place, ports):
    text = (SERVE / "nginx.conf").read_text()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    there = dict(zip((8420, 8421, 8422, 8423), (port, *ports), strict=True))
    text, found = re.subn(r"127\.0\.0\.1:(842\d)", lambda m: f"127.0.0.1:{there[int(m[1])]}", text)
    assert found == len(there)
    (place / "nginx.conf").write_text(text)
    shutil.copy(SERVE / "affinity.js", place)
    return port


def _listens(port):
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0
