"""``python tests/bench/serve``: many streams at once, beside a server that only echoes; and readers.

Rules: every server and the clients are processes of their own. The echo server comes first, so that
its delays tell how busy the machine is. Linux only: CPU and memory are the kernel's figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from plan import Plan
from process import HERE, free_port, python, serving, use
from reading import read
from report import Run, promises, report, told
from waiting import waiting


def streams(name: str, script: str, count: int, tokens: int) -> Run:
    """``count`` streams at once of one server."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(folder, free_port(), count, tokens)
        with serving(plan.port, script, plan.text()) as pid:
            before = use(pid)
            subprocess.run(python(str(HERE / "load.py"), plan.text()), check=True)
            after = use(pid)
        return Run(name, plan, read(plan), before, after)


def main() -> int:
    """Run and print; 1 with ``--check`` if a promise is broken."""
    words = argparse.ArgumentParser(prog="tests/bench/serve", description=__doc__)
    words.add_argument("--quick", action="store_true", help="64 streams of 3 s and 100 readers")
    words.add_argument("--check", action="store_true", help="exit with 1 if a promise is broken")
    words.add_argument("--streams", type=int, help="only these, of atem-serve; told as JSON")
    words.add_argument("--tokens", type=int, default=100, help="tokens of each of them")
    options = words.parse_args()
    if options.streams:
        print(told(streams("atem", "served.py", options.streams, options.tokens)))
        return 0
    count, tokens, readers = (64, 150, 100) if options.quick else (256, 1000, 1000)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    runs = [
        streams("echo", "echo.py", count, tokens),
        streams("atem", "served.py", count, tokens),
    ]
    kinds = [waiting(kind, readers) for kind in ("idle", "slow")]
    checks = promises(runs, kinds)
    print(report(runs, kinds, checks))
    return 1 if options.check and not all(check.held for check in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
