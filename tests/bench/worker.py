"""One process that measures one parser, on requests from standard input.

Rules: one JSON object per line in and out; a request names an operation of
``Worker``. Whatever a parser prints goes to standard error, and whatever it
raises is an answer. Times are in seconds here.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
import tracemalloc
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import streams
from adapters import Adapter, Atem, RefConcat, RefEvent, RefFind, fold
from peer_adapters import PEER_ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_CHARACTER = re.compile(r'"content":\s*"[^"]')
OWN: tuple[type[Adapter], ...] = (RefConcat, RefFind, RefEvent, Atem)
ADAPTERS = {adapter.name: adapter for adapter in (*OWN, *PEER_ADAPTERS)}


@lru_cache(maxsize=3)
def prepared(stream: str, mode: str) -> tuple[streams.Stream, list[str]]:
    """A stream and its deltas, made before any clock runs. Growth goes round three of them."""
    made = streams.build(stream)
    return made, streams.deltas(made, mode)


class Worker:
    """The operations on one parser."""

    def __init__(self, name: str) -> None:
        self.adapter = ADAPTERS[name]
        self.stream = streams.Stream("", "", {})
        self.deltas: list[str] = []

    def new(self) -> Adapter:
        """A parser in its first state, with the collector's debts paid."""
        gc.collect()
        return self.adapter(streams.TOOLS)

    def load(self) -> dict[str, Any]:
        """Import the parser; its version, or why it is left out."""
        try:
            return {"version": self.adapter.load()}
        except ImportError as error:
            return {"missing": str(error)}

    def use(self, stream: str, mode: str) -> dict[str, Any]:
        """Choose the stream, and how it is cut, for the operations that follow."""
        self.stream, self.deltas = prepared(stream, mode)
        return {"deltas": len(self.deltas)}

    def speed(self, limit: float) -> dict[str, Any]:
        """Time one pass; ``taken`` deltas, fewer than all if the limit cut it.

        Processor time, which other processes disturb least; parsing waits for nothing.
        """
        parser = self.new()
        begin = time.process_time()
        taken = parser.timed(self.deltas, limit)
        return {"seconds": time.process_time() - begin, "taken": taken}

    def latency(self, limit: float) -> dict[str, Any]:
        """Time from each pull of the source to the next, for one pass."""
        stamps: list[int] = []
        self.new().consume(self.stamped(stamps, limit))
        gaps = sorted(after - before for before, after in pairwise(stamps))
        at = {"p50": len(gaps) // 2, "p99": len(gaps) * 99 // 100, "max": len(gaps) - 1}
        return {key: gaps[index] / 1e9 for key, index in at.items()}

    def stamped(self, stamps: list[int], limit: float) -> Iterator[str]:
        """The deltas, each with the time of its pull, and the time after the last."""
        clock, append = time.perf_counter_ns, stamps.append
        end = clock() + int(limit * 1e9)
        for delta in self.deltas:
            now = clock()
            if now > end:
                return
            append(now)
            yield delta
        append(clock())

    def correct(self) -> dict[str, Any]:
        """Which of reasoning, content and calls differ from the truth."""
        found = fold(self.new().events(self.deltas))
        return {"wrong": [key for key, value in self.stream.truth.items() if found[key] != value]}

    def held(self) -> dict[str, Any]:
        """Characters of the large argument that were fed when its first one came out.

        None if nothing came out before the argument's end. Wants single characters.
        """
        start, end = self.stream.span or (0, 0)
        fed = 0

        def counted() -> Iterator[str]:
            nonlocal fed
            for delta in self.deltas:
                fed += len(delta)
                yield delta

        pieces = ""
        for kind, *rest in self.new().events(counted()):
            if kind == "args" and fed < end:
                pieces += rest[1]
                if FIRST_CHARACTER.search(pieces):
                    return {"held": fed - start}
        return {"held": None}

    def memory(self) -> dict[str, Any]:
        """Peak of traced memory in one pass whose events are dropped, in bytes.

        ``argument`` is the size of the large argument alone, as Python holds it.
        """
        span = self.stream.span
        parser = self.new()
        tracemalloc.start()
        base, _ = tracemalloc.get_traced_memory()
        parser.consume(self.deltas)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        size = sys.getsizeof(self.stream.text[slice(*span)]) if span else 0
        return {"peak": peak - base, "argument": size}


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        operation, arguments = json.loads(line)
        try:
            answer = getattr(worker, operation)(**arguments)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
