"""What all processes of one run know: how many streams say what, and when a piece was given.

Rules: the processes write and read one file of times. CLOCK_MONOTONIC is one clock for all
processes of a machine.
"""

from __future__ import annotations

import json
import mmap
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HEADER = " to=user<|message|>"
END = "<|eot|>"


@dataclass(frozen=True)
class Plan:
    """``streams`` at once, of ``tokens`` tokens each, ``rate`` tokens a second."""

    folder: str
    port: int
    streams: int = 256
    tokens: int = 250
    rate: float = 50.0
    path: str = "/v1/responses"

    @property
    def gap(self) -> int:
        """Nanoseconds from token to token."""
        return int(1e9 / self.rate)

    @property
    def stamps(self) -> Path:
        """The file of times."""
        return Path(self.folder) / f"stamps-{self.port}"

    @property
    def arrivals(self) -> Path:
        """What the clients got, and when."""
        return Path(self.folder) / f"arrivals-{self.port}"

    def text(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))


def words(count: int) -> list[str]:
    """The tokens of an answer, each another word, so that one that is lost shows."""
    return [f"w{number} " for number in range(count - 1)] + ["end"]


class Stamps:
    """Nanoseconds by stream and token: when it was due, and when it was given."""

    def __init__(self, plan: Plan) -> None:
        self.tokens = plan.tokens
        size = plan.streams * plan.tokens * 2 * 8
        if not plan.stamps.exists():
            plan.stamps.write_bytes(bytes(size))
        with plan.stamps.open("r+b") as opened:
            self._numbers = memoryview(mmap.mmap(opened.fileno(), size)).cast("q")

    def stamp(self, stream: int, token: int, due: int) -> None:
        """A token of a stream, which was due then, is given now."""
        place = 2 * (stream * self.tokens + token)
        self._numbers[place] = due
        self._numbers[place + 1] = time.monotonic_ns()

    def of(self, stream: int) -> list[tuple[int, int]]:
        """Due and given, for each token of a stream."""
        begin, end = 2 * stream * self.tokens, 2 * (stream + 1) * self.tokens
        row = self._numbers[begin:end].tolist()
        return list(zip(row[::2], row[1::2], strict=True))
