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

from measure import ORACLE_MODES, Plan, measure
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
        modes=ORACLE_MODES if options.full else ("token",),
        limit=options.limit or (5.0 if options.full else 1.0),
        repeats=15 if options.full else 9,
        memory_of=tuple(ADAPTERS) if options.full else ("ref-concat", "ref-event", "atem"),
    )


def main() -> int:
    """Run and print; 1 with ``--check`` if a promise is broken."""
    words = argparse.ArgumentParser(prog="tests/bench", description=__doc__)
    words.add_argument("--full", action="store_true", help="every stream in every cut, 15 repeats")
    words.add_argument("--parsers", nargs="+", choices=ADAPTERS, metavar="NAME", help="only these")
    words.add_argument("--streams", nargs="+", choices=MAKERS, metavar="NAME", help="only these")
    words.add_argument("--limit", type=float, help="seconds after which a pass is cut")
    words.add_argument("--check", action="store_true", help="exit with 1 if a promise is broken")
    words.add_argument("--out", type=Path, help="write the raw results there, as JSON")
    options = words.parse_args()
    versions, cells = measure(plan_of(options))
    text, kept = report(versions, cells)
    print(text)
    if options.out:
        rows = {"/".join(key): {n: asdict(c) for n, c in row.items()} for key, row in cells.items()}
        results = {"versions": versions, "cells": rows}
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if options.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
