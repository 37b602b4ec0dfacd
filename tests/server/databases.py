"""A real PostgreSQL and a real Redis for the tests, each started once.

Rules: servers of Debian's packages, in a temporary folder of their own, that
listen on a socket in it and on nothing else. A test is skipped only where the
program is not installed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from atem.server.store import Bounds
from atem.server.store.postgres import PostgresStore
from atem.server.store.redis import RedisStore

_numbers = count(1)


class Database:
    """``url`` is the address, ``store`` the class of its stores; it can be stopped and started.

    ``socket`` is where it listens, ``remote`` its address if a port of loopback stood for that.
    """

    def __init__(self, kind, store, url, command, *, socket, remote, **options):
        self.kind = kind
        self.store = store
        self.url = url
        self.socket = socket
        self.remote = remote
        self._command = command
        self._options = options
        self._process = None

    def name(self):
        """A name that nothing was stored under."""
        return f"test_{next(_numbers)}"

    def make(self, *arguments, **named):
        """A store that is empty, unless a name is given."""
        return self.store(self.url, *arguments, **{"name": self.name(), **named})

    def made(self, clock, name, **bounds):
        """One of several stores that share what is kept under a name."""
        return self.store(self.url, Bounds(**bounds), clock, name)

    def start(self):
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._options
        )

    def stop(self):
        self._process.send_signal(signal.SIGINT)  # to PostgreSQL: end, whoever is connected
        self._process.wait(20)


@contextmanager
def folder(user=None):
    """A short path, as one of a socket has to be."""
    made = Path(tempfile.mkdtemp(prefix="atem-"))
    try:
        if user is not None:
            shutil.chown(made, user)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def started(database, is_up):
    database.start()
    try:
        until = time.monotonic() + 30
        while not is_up():
            assert database._process.poll() is None, f"{database.kind} ended"
            assert time.monotonic() < until, f"{database.kind} doesn't answer"
            time.sleep(0.02)
        yield database
    finally:
        database.stop()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (found and found[-1])
    if not initdb:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    programs = Path(initdb).resolve().parent
    user = _unprivileged()
    options = {"cwd": "/"} if user is None else {"cwd": "/", "user": user, "extra_groups": []}
    with folder(user) as place:
        subprocess.run(
            [initdb, "-D", place / "data", "-U", "atem", "-A", "trust", "--no-sync", "-E", "UTF8"],
            check=True,
            capture_output=True,
            **options,
        )
        command = [programs / "postgres", "-D", place / "data", "-k", place, "-F", "-h", ""]
        url = f"postgresql://atem@/postgres?host={place}"
        database = Database(
            "postgres",
            PostgresStore,
            url,
            command,
            socket=place / ".s.PGSQL.5432",
            remote="postgresql://atem@127.0.0.1:{}/postgres",
            **options,
        )
        ready = [programs / "pg_isready", "-q", "-h", place]
        with started(database, lambda: subprocess.call(ready) == 0):
            yield database


def _unprivileged():
    """Who PostgreSQL runs as where we are root, which it refuses to run as."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="session")
def redis():
    """A Redis."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no Redis: apt-get install redis-server")
    with folder() as place:
        options = ["--port", "0", "--save", "", "--dir", place, "--unixsocket", place / "redis"]
        command, path = [program, *options], place / "redis"
        names = {"socket": path, "remote": "redis://127.0.0.1:{}"}
        database = Database("redis", RedisStore, f"unix://{path}", command, **names)
        with started(database, path.is_socket):
            yield database


@pytest.fixture(scope="module")
def free_port():
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture(params=["postgres", "redis"])
def database(request):
    """One, then the other."""
    return request.getfixturevalue(request.param)
