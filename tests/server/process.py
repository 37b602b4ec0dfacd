"""The command atem-serve as a process of its own.

Rules: a free port unless a test names one, and no variable of this shell that the command reads.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading


def command(*arguments):
    """A command line of the server's."""
    return [sys.executable, "-m", "atem.cli.serve", *arguments]


def environment(**variables):
    """This shell's, without what the command reads; and ``variables``."""
    return {k: v for k, v in os.environ.items() if not k.startswith("ATEM_SERVE")} | variables


class Process:
    """``python -m atem.cli.serve`` with a free port, up when this is made."""

    def __init__(self, *arguments, **variables):
        self.process = subprocess.Popen(
            command("--port", "0", *arguments),
            env=environment(**variables),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = []
        self.up = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self.up.wait(40), self.lines
        self.url = re.search(r"http://\S+", "".join(self.lines))[0]

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if " on http://" in line:
                self.up.set()
        self.up.set()

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
