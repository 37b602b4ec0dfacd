"""The programs that are driven: where they are, and homes of their own for them.

Rules: a program sees an empty home and no variable of this shell but PATH, so
that nothing of the machine's comes in. It is killed when it takes too long.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

INSTALLED = Path(__file__).parents[3] / ".clients" / "node" / "node_modules" / ".bin"
SECONDS = 120

PROGRAMS = {"codex": "codex", "opencode": "opencode", "claude-code": "claude"}
"""Client -> its program."""


def program(name):
    """The path of a program that ``make clients`` has installed."""
    path = INSTALLED / name
    if not path.exists():
        pytest.fail(f"{path} is not there; `make clients` installs it")
    return str(path)


def version(name):
    """What a program says of itself, and its name."""
    said = subprocess.run(
        [program(PROGRAMS[name]), "--version"], capture_output=True, text=True, check=True
    )
    return f"{name} {re.search(r'[0-9][0-9.]+', said.stdout)[0]}"


class Place:
    """A home and a folder to work in, for one run of a program."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir(parents=True)
        self.work.mkdir()

    def put(self, files):
        """Write these texts into the folder to work in."""
        for name, text in dict(files).items():
            (self.work / name).write_text(text)

    def run(self, command, *, seconds=SECONDS, **environment):
        """Run it in the folder; what it wrote."""
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def environment(self, **more):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
            "LANG": "C.UTF-8",
            **more,
        }
