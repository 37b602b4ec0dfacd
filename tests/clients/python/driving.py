"""Drivers in the environment that ``make clients`` makes, against a server of their own.

Rules: a driver runs in a process of its own, in an empty home, with no variable
of this shell but PATH. What it wrote last is its result. The server is the
command, with a script in the model's own text.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.node.serving import Server
from tests.clients.node.turns import answer, call, thinking, turn

PYTHON = Path(__file__).parents[3] / ".clients" / "python" / "bin" / "python"
DRIVERS = Path(__file__).parent / "drivers"

SAID = "It is 7 degrees in Oslo."
FOUND = {"city": "Oslo", "degrees": 7}
CALLS = thinking(call("weather", city="Oslo"))
AS_JSON = f" to=user<|message|>{json.dumps(FOUND)}<|eot|>"

TURNS = [
    turn(call("final_result", **FOUND), last="^tool", all="final_result"),
    turn(AS_JSON, last="^tool", all="as JSON"),
    turn(answer(SAID), last="^tool"),
    turn(AS_JSON, last="^user.*Tell me the weather as JSON"),
    turn(CALLS),
]
"""The model looks the weather up and tells it, in words or in the form that it is asked for."""


class Driver:
    """The functions of one driver, driven against one server."""

    def __init__(self, server, module, folder):
        self.server = server
        self._module = module
        self._folder = folder

    def __call__(self, function, seconds=90):
        """What ``function`` of the driver returns for the server's address."""
        if not PYTHON.exists():
            pytest.fail(f"{PYTHON} is not there; `make clients` installs it")
        command = [str(PYTHON), "-W", "ignore", str(DRIVERS / "run.py"), self._module, function]
        ran = subprocess.run(
            [*command, f"http://127.0.0.1:{self.server.port}/v1"],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    def bodies(self, function, path):
        """What ``function`` asked of ``path``."""
        before = len(self.server.bodies(path))
        self(function)
        return self.server.bodies(path)[before:]


def driver_of(module):
    """A fixture: the driver ``module`` and a server that plays the turns."""

    @pytest.fixture(scope="module")
    def driven(tmp_path_factory):
        folder = tmp_path_factory.mktemp(module)
        with Server(folder / "server", TURNS) as server:
            yield Driver(server, module, folder)

    return driven
