"""Measurements of all parsers, taken in turn.

Rules: only one worker works at a time, and every repeat goes round all
parsers, so that a slow moment of the machine hits all of them. Nothing is
judged here; ``report`` does that.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

MODES = ("token", "char", "whole")
GROWTH = {"write64k": 64, "write256k": 256, "write1024k": 1024}  # KiB of one argument
GROWTH_ROUNDS = 9


class Plan(NamedTuple):
    """What to run. ``limit`` (seconds) cuts a pass of a slow parser."""

    parsers: list[str]
    streams: list[str]
    modes: tuple[str, ...]
    limit: float
    repeats: int
    memory_of: tuple[str, ...]


@dataclass
class Cell:
    """One parser on one stream in one cut; ``seconds`` has one entry per repeat."""

    deltas: int = 0
    taken: int = 0
    seconds: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    longest: float = 0.0
    wrong: list[str] | None = None
    asked: bool = False  # for held, of which None means that nothing came out early
    held: int | None = None
    peak: int | None = None
    argument: int = 0
    error: str = ""

    @property
    def whole(self) -> bool:
        """Whether the passes were not cut."""
        return self.taken == self.deltas

    @property
    def rate(self) -> float:
        """Deltas per second in the best pass; of a cut pass it covers the beginning only."""
        return self.taken / min(self.seconds) if self.seconds else 0.0


Cells = dict[tuple[str, str], dict[str, Cell]]


class Results(NamedTuple):
    """All measurements.

    ``versions`` by parser, or why it was left out; ``cells`` by stream and
    mode, then parser; ``growth`` by parser: for each round, the seconds of the
    streams of ``GROWTH``.
    """

    versions: dict[str, str]
    cells: Cells
    growth: dict[str, list[list[float]]]


class Process:
    """A worker and its pipe."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [sys.executable, str(Path(__file__).with_name("worker.py")), name]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True)
        assert self.process.stdin
        assert self.process.stdout
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; a dead worker answers with an error."""
        try:
            print(json.dumps([operation, arguments]), file=self.requests, flush=True)
            line = self.answers.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the worker died"}
        return answer

    def stop(self) -> None:
        """End the worker."""
        self.requests.close()
        self.process.wait(20)
        self.answers.close()


def start(names: list[str]) -> tuple[list[Process], dict[str, str]]:
    """Start one worker per parser; those that load, and what each answered."""
    ready, answers = [], {}
    for name in names:
        process = Process(name)
        answer = process.ask("load")
        if "version" in answer:
            ready.append(process)
            answers[name] = answer["version"]
        else:
            answers[name] = "left out: " + (answer.get("missing") or answer["error"])
            process.stop()
    return ready, answers


def repeats(seconds: float, most: int) -> int:
    """How often to repeat a pass that took so long: about a second's worth."""
    return min(most, int(1 / seconds))


def measure_speed(processes: list[Process], plan: Plan, row: dict[str, Cell]) -> None:
    """Time every parser; a first pass warms up, and counts where it is the only one."""
    left: dict[str, int] = {}
    for process in processes:
        cell = row[process.name]
        answer = process.ask("speed", limit=plan.limit)
        if "error" in answer:
            cell.error = answer["error"]
            continue
        cell.taken = answer["taken"]
        left[process.name] = repeats(answer["seconds"], plan.repeats) if cell.whole else 0
        if not left[process.name]:
            cell.seconds = [answer["seconds"]]
    for turn in range(max(left.values(), default=0)):
        for process in processes:
            if turn < left.get(process.name, 0):
                answer = process.ask("speed", limit=plan.limit)
                row[process.name].seconds.append(answer["seconds"])


def measure_latency(processes: list[Process], plan: Plan, row: dict[str, Cell]) -> None:
    """Time between deltas, five passes each, or one of a parser that is slow."""
    for turn in range(5):
        for process in processes:
            cell = row[process.name]
            if cell.error or (turn and (not cell.whole or min(cell.seconds) > 0.5)):
                continue
            answer = process.ask("latency", limit=plan.limit / 2)
            if "p99" in answer:
                cell.p99.append(answer["p99"])
                cell.longest = max(cell.longest, answer["max"])


def measure_rest(process: Process, cell: Cell, stream: str, plan: Plan) -> None:
    """Truth, and memory where the plan asks for it."""
    if not cell.whole:
        return
    cell.wrong = process.ask("correct").get("wrong", ["raised"])
    if process.name in plan.memory_of and stream.endswith("1024k"):
        answer = process.ask("memory")
        cell.peak, cell.argument = answer.get("peak"), answer.get("argument", 0)


def measure_row(processes: list[Process], plan: Plan, stream: str, mode: str) -> dict[str, Cell]:
    """All parsers on one stream in one cut."""
    row = {p.name: Cell(deltas=p.ask("use", stream=stream, mode=mode)["deltas"]) for p in processes}
    measure_speed(processes, plan, row)
    if mode == "token":
        measure_latency(processes, plan, row)
    for process in processes:
        if not row[process.name].error and not process.name.startswith("ref-"):
            measure_rest(process, row[process.name], stream, plan)
    return row


def measure_held(processes: list[Process], cells: Cells) -> None:
    """How late the large argument shows, fed by single characters."""
    for stream, mode in list(cells):
        if mode != "token" or stream not in ("adversarial", "write64k"):
            continue
        for process in processes:
            cell = cells[stream, mode][process.name]
            if not process.name.startswith("ref-") and cell.whole and not cell.error:
                process.ask("use", stream=stream, mode="char")
                cell.asked, cell.held = True, process.ask("held").get("held")


def measure_oracle(processes: list[Process], plan: Plan, cells: Cells) -> None:
    """Compare atem with the truth in every cut that was not timed."""
    for process in processes:
        if process.name != "atem":
            continue
        for stream in plan.streams:
            for mode in MODES:
                if (stream, mode) in cells:
                    continue
                process.ask("use", stream=stream, mode=mode)
                wrong = process.ask("correct").get("wrong", ["raised"])
                cells[stream, mode] = {"atem": Cell(wrong=wrong)}


def measure_growth(processes: list[Process]) -> dict[str, list[list[float]]]:
    """Time of one argument over its size.

    Each round goes over all sizes and both parsers, so that none of them has
    the machine's quiet moments to itself.
    """
    growth: dict[str, list[list[float]]] = {}
    compared = [process for process in processes if process.name in ("ref-event", "atem")]
    for _ in range(GROWTH_ROUNDS):
        for process in compared:
            growth.setdefault(process.name, []).append([])
        for stream in GROWTH:
            for process in compared:
                process.ask("use", stream=stream, mode="token")
                seconds = process.ask("speed", limit=60.0).get("seconds", math.nan)
                growth[process.name][-1].append(seconds)
    return growth


def measure(plan: Plan) -> Results:
    """Run the plan."""
    processes, versions = start(plan.parsers)
    cells: Cells = {}
    try:
        for stream in plan.streams:
            for mode in plan.modes:
                print(f"measuring {stream}, {mode}", file=sys.stderr, flush=True)
                cells[stream, mode] = measure_row(processes, plan, stream, mode)
        print("measuring growth, visibility and results", file=sys.stderr, flush=True)
        growth = measure_growth(processes) if set(GROWTH) <= set(plan.streams) else {}
        measure_held(processes, cells)
        measure_oracle(processes, plan, cells)
    finally:
        for process in processes:
            process.stop()
    return Results(versions, cells, growth)
