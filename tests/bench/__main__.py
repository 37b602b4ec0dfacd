"""``python tests/bench``: measure atem beside references and released parsers.

Rules: arguments and printing only. The default run takes a few minutes and
covers every promise; ``--full`` adds sizes, cuts, repeats and the memory of
the released parsers.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from measure import MODES, Plan, measure
from report import report
from streams import MAKERS
from worker import ADAPTERS

QUICK = ("chat", "agent", "parallel32", "adversarial", "answer1024k", "write64k", "write256k")


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan that the options ask for."""
    streams = options.streams or (list(MAKERS) if options.full else [*QUICK, "write1024k"])
    return Plan(
        parsers=options.parsers or list(ADAPTERS),
        streams=streams,
        modes=MODES if options.full else ("token",),
        limit=options.limit or (5.0 if options.full else 2.0),
        repeats=40 if options.full else 20,
        memory_of=tuple(ADAPTERS) if options.full else ("atem",),
    )


def main() -> int:
    """Run and print; 1 with ``--check`` if a promise is broken."""
    words = argparse.ArgumentParser(prog="tests/bench", description=__doc__)
    words.add_argument(
        "--full", action="store_true", help="every stream in every cut, more repeats"
    )
    words.add_argument("--parsers", nargs="+", choices=ADAPTERS, metavar="NAME", help="only these")
    words.add_argument("--streams", nargs="+", choices=MAKERS, metavar="NAME", help="only these")
    words.add_argument("--limit", type=float, help="seconds after which a pass is cut")
    words.add_argument("--check", action="store_true", help="exit with 1 if a promise is broken")
    words.add_argument("--out", type=Path, help="write the raw results there, as JSON")
    options = words.parse_args()
    results = measure(plan_of(options))
    text, kept = report(results)
    print(text)
    if options.out:
        cells = {"/".join(key): row for key, row in results.cells.items()}
        raw = json.dumps(results._asdict() | {"cells": cells}, default=asdict, indent=1)
        options.out.write_text(raw + "\n", encoding="utf-8")
    return 1 if options.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
