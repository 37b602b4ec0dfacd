"""What the clients got, checked against the script, and how late it was.

Rules: an event is what a client can use: an event line, a line of JSON, an empty line. A token
has arrived with the event in whose text it ends.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from plan import Plan, Stamps, words

if TYPE_CHECKING:
    from collections.abc import Iterator

Parts = list[tuple[int, bytes]]


@dataclass
class Reading:
    """Counts, and nanoseconds from when a token was due, and given, to its arrival."""

    complete: int = 0
    events: int = 0
    bytes: int = 0
    faults: list[str] = field(default_factory=list)
    after_due: list[int] = field(default_factory=list)
    after_given: list[int] = field(default_factory=list)

    def add(self, stream: int, parts: Parts, stamps: Stamps, said: list[str]) -> None:
        """Count one stream in."""
        found = list(events(parts))
        self.events += len(found)
        self.bytes += sum(len(data) for _, data in parts)
        numbers = [event["sequence_number"] for _, event in found]
        text = "".join(event.get("delta", "") for _, event in found)
        if numbers != list(range(len(numbers))):
            self.faults.append(f"stream {stream}: numbers with gaps or out of order")
        if text != "".join(said):
            self.faults.append(f"stream {stream}: {len(text)} characters, not the script's")
        elif not found or found[-1][1]["type"] != "response.completed":
            self.faults.append(f"stream {stream}: no end")
        else:
            self.complete += 1
            self._times(found, stamps.of(stream), said)

    def _times(
        self, found: list[tuple[int, Any]], stamped: list[tuple[int, int]], said: list[str]
    ) -> None:
        ends = accumulate(map(len, said))
        arrived, length = iter(found), 0
        now = 0
        for (due, given), end in zip(stamped, ends, strict=True):
            while length < end:
                now, event = next(arrived)
                length += len(event.get("delta", ""))
            self.after_due.append(now - due)
            self.after_given.append(now - given)


def events(parts: Parts) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a body in chunks, each with the time at which its last byte came."""
    rest, begun = b"", False
    for now, data in parts:
        rest += data
        if not begun:
            head, begun, rest = rest.partition(b"\r\n\r\n")
            if not begun:
                rest = head
                continue
        *blocks, rest = rest.split(b"\n\n")
        for block in blocks:
            yield now, json.loads(block[block.index(b"data: ") + 6 :])


def read(plan: Plan) -> Reading:
    """All streams of a run."""
    reading, stamps, said = Reading(), Stamps(plan), words(plan.tokens)
    arrivals = pickle.loads(plan.arrivals.read_bytes())
    for stream, parts in enumerate(arrivals):
        reading.add(stream, parts, stamps, said)
    return reading
