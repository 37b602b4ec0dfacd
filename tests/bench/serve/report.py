"""The tables of a run, and what the project promises of them.

Rules: printing only. A delay is that of a token, from when the engine gave it to the client's
receipt of the event that it is in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from plan import Plan
    from process import Use
    from reading import Reading
    from waiting import Waiting

MOST_DELAY = 50.0
MOST_EACH = 128.0
MOST_OF_A_STREAM = 512.0
MOST_RATIO = 4.0
"""CPU for a token beside the server that only echoes: 1.8 to 2.3 seen with 256 streams. Fewer share
less of what a turn of the loop costs (64: 3.3), so that nothing is promised of them."""

MANY = 256


class Run(NamedTuple):
    """Streams of one server, and what it used."""

    name: str
    plan: Plan
    reading: Reading
    before: Use
    after: Use

    @property
    def tokens(self) -> int:
        """Tokens of text of all streams."""
        return self.plan.streams * self.plan.tokens

    @property
    def cpu(self) -> float:
        """Microseconds of the server for a token."""
        return 1e6 * (self.after.cpu - self.before.cpu) / self.tokens

    @property
    def each(self) -> float:
        """KiB of the server for a stream."""
        return 1024 * (self.after.peak - self.before.now) / self.plan.streams


class Promise(NamedTuple):
    """What is promised, what was found, and whether that holds."""

    text: str
    found: str
    held: bool

    def line(self) -> str:
        """The verdict."""
        return f"  {'held' if self.held else 'BROKEN':<8}{self.text:<58}{self.found:>12}"


def part(delays: list[int], share: float) -> float:
    """The milliseconds that ``share`` of the delays don't exceed."""
    return sorted(delays)[int(len(delays) * share)] / 1e6 if delays else float("nan")


def ratio(runs: list[Run]) -> float:
    """CPU of the server for a token, as a multiple of the echo's."""
    return runs[-1].cpu / runs[0].cpu


def told(run: Run) -> str:
    """One run as JSON, for a test."""
    reading = run.reading
    return json.dumps(
        {
            "complete": reading.complete,
            "events": reading.events,
            "faults": reading.faults,
            "each": run.each,
            "p99": part(reading.after_given, 0.99),
        }
    )


def report(runs: list[Run], kinds: list[Waiting], checks: list[Promise]) -> str:
    """All of it."""
    plan = runs[0].plan
    head = f"{plan.streams} streams at once, {plan.tokens} tokens each, {plan.rate:g} a second"
    columns = ("complete", "events", "bytes", "p50", "p99", "late p99", "CPU", "MiB")
    lines = [head, f"{'':<8}" + "".join(f"{name:>12}" for name in columns)]
    for run in runs:
        reading = run.reading
        cells = (
            f"{reading.complete}/{run.plan.streams}",
            f"{reading.events}",
            f"{reading.bytes / max(1, reading.events):.0f}",
            f"{part(reading.after_given, 0.5):.1f}",
            f"{part(reading.after_given, 0.99):.1f}",
            f"{part(reading.after_due, 0.99):.1f}",
            f"{run.cpu:.0f}",
            f"{run.before.now:.0f}-{run.after.peak:.0f}-{run.after.now:.0f}",
        )
        lines.append(f"{run.name:<8}" + "".join(f"{cell:>12}" for cell in cells))
        lines += [f"  {fault}" for fault in reading.faults[:5]]
    lines += [
        "p50, p99: ms from the engine's token to its receipt; late: from when it was due;",
        "bytes of an event with its share of the head; CPU: us of the server for a token;",
        f"MiB before, at most, after. CPU as a ratio: {ratio(runs):.2f}",
        "",
        *(kind.line() for kind in kinds),
        "",
        "promises",
        *(check.line() for check in checks),
    ]
    return "\n".join(lines)


def promises(runs: list[Run], kinds: list[Waiting]) -> list[Promise]:
    """Every promise about the server under load."""
    atem = runs[-1]
    faults = len(atem.reading.faults)
    delay = part(atem.reading.after_given, 0.99)
    cpu = Promise(
        f"CPU for a token under {MOST_RATIO:g} times the echo's",
        f"{ratio(runs):.2f}",
        ratio(runs) < MOST_RATIO,
    )
    return [
        Promise(
            "every stream complete, in order, the script's text", f"{faults} faults", not faults
        ),
        Promise(
            f"p99 of a token's delay under {MOST_DELAY:g} ms", f"{delay:.1f}", delay < MOST_DELAY
        ),
        *([cpu] if atem.plan.streams >= MANY else []),
        Promise(
            f"KiB for each stream under {MOST_OF_A_STREAM:g}",
            f"{atem.each:.0f}",
            atem.each < MOST_OF_A_STREAM,
        ),
        *(
            Promise(
                f"KiB for each {kind.name} reader under {MOST_EACH:g}",
                f"{kind.each:.0f}",
                kind.each < MOST_EACH,
            )
            for kind in kinds
        ),
    ]
