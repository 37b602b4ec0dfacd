"""Results as text: one table of rates, and what the project promises.

Rules: reads cells, measures nothing. A promise is one line with its figure and
its bound; a promise that could not be measured says so and is not kept.
"""

from __future__ import annotations

import math
import platform
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from measure import GROWTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from measure import Cell, Cells, Results

TIMED = ("chat", "adversarial", "write64k")
SLOWER_THAN_REFERENCE = 8
FASTER_THAN_PEER = 8
SLOPE = 0.05
P99 = 10
HELD = 17  # characters
DROPPED = 64 * 1024  # bytes
ARGUMENT = 4.5  # times the size of the string


class Promise(NamedTuple):
    """One line of the verdict. ``value`` is None where nothing was measured."""

    text: str
    value: float | None
    bound: float
    unit: str = ""
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Whether the figure is within its bound."""
        if self.value is None:
            return False
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self) -> str:
        """The promise, its figure, its bound."""
        word = ("kept" if self.kept else "BROKEN") if self.value is not None else "not measured"
        value = (
            "-"
            if self.value is None
            else f"{self.value:,.3g}"
            if self.value < 1000
            else si(self.value)
        )
        bound = f"{'>=' if self.at_least else '<='} {self.bound:g}"
        return f"  {word:<13}{self.text:<58}{value:>9} {self.unit:<6}{bound}"


def si(value: float) -> str:
    """A number in three figures: 12.3k, 4.56M."""
    for factor, letter in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


# ------------------------------------------------------------------- tables


def machine() -> str:
    """The processor and the interpreter."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        model = f"{names[0]} x{len(names)}"
    except (OSError, IndexError):
        pass
    return f"{model}, Python {platform.python_version()}, {platform.system()}"


def percent(cell: Cell) -> str:
    """How much of the stream a cut pass saw."""
    return f"{100 * cell.taken // cell.deltas}%"


def rate(cell: Cell | None) -> str:
    """One entry of the table of rates."""
    if cell is None:
        return ""
    if cell.error:
        return "error"
    suffix = "!" if cell.wrong else ""
    return f"{si(cell.rate)}{suffix}" + ("" if cell.whole else f" ({percent(cell)})")


def late(cell: Cell | None) -> str:
    """One entry of the table of latencies."""
    if cell is None or not cell.p99:
        return ""
    return f"{statistics.median(cell.p99) * 1e6:.3g}/{si(cell.longest * 1e6)}"


def held(cell: Cell | None) -> str:
    """One entry of the table of visibility."""
    if cell is None or not cell.asked:
        return ""
    return "all" if cell.held is None else str(cell.held)


def peak(cell: Cell | None) -> str:
    """One entry of the table of memory."""
    return "" if cell is None or cell.peak is None else f"{cell.peak / 1024:,.0f}"


def table(title: str, names: list[str], rows: dict[str, list[str]]) -> Iterator[str]:
    """Lines of a table whose first column is the rows' keys."""
    if not rows:
        return
    width = [
        max(len(name), *(len(row[i]) for row in rows.values())) for i, name in enumerate(names)
    ]
    first = max(len(key) for key in rows)
    yield ""
    yield title
    yield " " * first + "".join(f"  {name:>{w}}" for name, w in zip(names, width, strict=True))
    for key, row in rows.items():
        yield f"{key:<{first}}" + "".join(f"  {x:>{w}}" for x, w in zip(row, width, strict=True))


def tables(names: list[str], cells: Cells) -> Iterator[str]:
    """The rates, the latencies and the oracle."""
    timed = {key: row for key, row in cells.items() if any(c.seconds for c in row.values())}

    def label(key: tuple[str, str]) -> str:
        return key[0] if key[1] == "token" else " by ".join(key)

    def column(entry: Callable[[Cell | None], str], *, cut: bool) -> dict[str, list[str]]:
        kept = {label(key): row for key, row in timed.items() if cut or key[1] == "token"}
        rows = {key: [entry(row.get(name)) for name in names] for key, row in kept.items()}
        return {key: row for key, row in rows.items() if any(row)}

    yield from table(
        "deltas per second of processor time, best pass (! result differs from the "
        "truth; % of the stream seen when time ran out, which flatters)",
        names,
        column(rate, cut=True),
    )
    yield from table(
        "microseconds from one delta to the next, p99/longest", names, column(late, cut=False)
    )
    yield from table(
        "characters of the large argument that were fed, one by one, when its first one showed",
        names,
        column(held, cut=False),
    )
    yield from table("peak of traced memory in KiB, events dropped", names, column(peak, cut=False))


# ----------------------------------------------------------------- promises


def cell_of(cells: Cells, stream: str, name: str) -> Cell | None:
    """A cell cut into tokens, if it was measured without an error."""
    cell = cells.get((stream, "token"), {}).get(name)
    return None if cell is None or cell.error else cell


def speedup(cells: Cells, stream: str, fast: str, slow: str) -> float | None:
    """How many times more deltas a second ``fast`` takes, best pass against best pass."""
    ours, theirs = cell_of(cells, stream, fast), cell_of(cells, stream, slow)
    return None if ours is None or theirs is None else ours.rate / theirs.rate


def steeper(growth: dict[str, list[list[float]]]) -> float | None:
    """How much larger atem's exponent of time over size is, from the best round of each size."""
    if not {"atem", "ref-event"} <= set(growth):
        return None
    sizes = [math.log(size) for size in GROWTH.values()]

    def slope(rounds: list[list[float]]) -> float:
        best = [math.log(min(seconds)) for seconds in zip(*rounds, strict=True)]
        return statistics.linear_regression(sizes, best).slope

    return slope(growth["atem"]) - slope(growth["ref-event"])


def late_ratio(cells: Cells, stream: str) -> float | None:
    """The p99 of atem over that of ref-event."""
    ours, theirs = cell_of(cells, stream, "atem"), cell_of(cells, stream, "ref-event")
    if ours is None or theirs is None or not (ours.p99 and theirs.p99):
        return None
    return statistics.median(ours.p99) / statistics.median(theirs.p99)


def memory_promises(cells: Cells) -> Iterator[Promise]:
    """Memory while nothing is kept, and while one argument is."""
    dropped, written = (cell_of(cells, s, "atem") for s in ("answer1024k", "write1024k"))
    peak = dropped.peak if dropped else None
    yield Promise("memory for a dropped 1 MiB answer", peak, DROPPED, "bytes")
    share = written.peak / written.argument if written and written.peak is not None else None
    yield Promise("memory for a 1 MiB argument over its own size", share, ARGUMENT)


def promises(results: Results) -> Iterator[Promise]:
    """Every promise about speed, latency, memory and results."""
    cells = results.cells
    for stream in TIMED:
        ratio = speedup(cells, stream, "ref-event", "atem")
        yield Promise(
            f"{stream}: ref-event / atem, deltas per second", ratio, SLOWER_THAN_REFERENCE
        )
    for peer in ("freetoken", "sglang"):
        for stream in TIMED:
            ratio = speedup(cells, stream, "atem", peer)
            text = f"{stream}: atem / {peer}, deltas per second"
            yield Promise(text, ratio, FASTER_THAN_PEER, at_least=True)
    above = steeper(results.growth)
    yield Promise("64 KiB to 1 MiB: atem's exponent above ref-event's", above, SLOPE)
    for stream in (*TIMED, "write1024k"):
        yield Promise(f"{stream}: p99 of a delta, atem / ref-event", late_ratio(cells, stream), P99)
    for stream in ("adversarial", "write64k"):
        cell = cell_of(cells, stream, "atem")
        text = f"{stream}: fed when an argument's first character shows"
        yield Promise(text, cell.held if cell else None, HELD, "chars")
    yield from memory_promises(cells)
    rows = [row["atem"] for row in cells.values() if "atem" in row]
    wrong = sum(cell.wrong != [] for cell in rows) if rows else None
    yield Promise("streams and cuts whose result differs from the truth", wrong, 0)


def report(results: Results) -> tuple[str, bool]:
    """The whole text, and whether every promise that was measured is kept."""
    versions, cells = results.versions, results.cells
    names = [name for name, version in versions.items() if not version.startswith("left out")]
    lines = [machine()]
    lines += [f"  {name:<11}{version}" for name, version in versions.items() if version]
    if any(version.startswith("left out") for version in versions.values()):
        lines.append("  `make peers` installs the released parsers")
    lines += tables(names, cells)
    checks = list(promises(results))
    lines += ["", "promises", *(check.line() for check in checks)]
    return "\n".join(lines), all(check.kept for check in checks if check.value is not None)
