"""Processes of a run: begun, watched from outside, ended.

Rules: figures are the kernel's, of the whole process with its threads; Linux only.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """CPU seconds so far; MiB now, and at most so far."""

    cpu: float
    now: float
    peak: float


def use(pid: int) -> Use:
    """What a process uses."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    now, peak = (
        int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
        for name in ("VmRSS", "VmHWM")
    )
    return Use((int(fields[11]) + int(fields[12])) / TICKS, now, peak)


def python(*words: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *words]


def free_port() -> int:
    """A port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def serving(port: int, *command: str) -> Iterator[int]:
    """The process of a server, once its port answers; its id."""
    with subprocess.Popen(python(*command), cwd=HERE) as process:
        try:
            wait(port, process)
            yield process.pid
        finally:
            process.kill()


def wait(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Wait until a port answers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{process.args} does not answer on {port}")
