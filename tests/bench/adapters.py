"""What every measured parser looks like to the benchmark, the references, and atem.

Rules: an adapter turns a parser's results into the plain tuples below and adds
nothing else. Released parsers are in ``peer_adapters``.

    ("reasoning", text)   ("content", text)
    ("call", i, name)     call i begins
    ("args", i, text)     next piece of the JSON text of call i's arguments
    ("final", i, dict)    call i's arguments as a dict: replaces the pieces
    ("drop", i)           call i is taken back
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Event = tuple[Any, ...]
Tools = list[dict[str, Any]]


class Adapter:
    """A parser that is pushed deltas: ``feed`` and ``close`` give events."""

    name: ClassVar[str]

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @classmethod
    def load(cls) -> str:
        """Import the package and return its version; ImportError if it is not installed."""
        return ""

    def feed(self, delta: str) -> Sequence[Event]:
        """Events that one more delta makes certain."""
        raise NotImplementedError

    def close(self) -> Sequence[Event]:
        """Events of the end of the stream."""
        return ()

    def events(self, deltas: Iterable[str]) -> Iterator[Event]:
        """All events, each as early as the parser gives it."""
        for delta in deltas:
            yield from self.feed(delta)
        yield from self.close()

    def consume(self, deltas: Iterable[str]) -> None:
        """Parse as fast as the parser goes, and keep nothing."""
        feed = self.feed
        for delta in deltas:
            feed(delta)
        self.close()

    def timed(self, deltas: list[str], limit: float) -> int:
        """As ``consume``, but stop after ``limit`` seconds; how many deltas were taken.

        The clock is read every 128 deltas, which costs the references as little as it can.
        """
        feed, end = self.feed, time.perf_counter() + limit
        for at in range(0, len(deltas), 128):
            if time.perf_counter() > end:
                return at
            for delta in deltas[at : at + 128]:
                feed(delta)
        self.close()
        return len(deltas)


# --------------------------------------------------------------- references


class RefConcat(Adapter):
    """No parsing: keeps the deltas and joins them at the end."""

    name = "ref-concat"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.parts: list[str] = []

    def feed(self, delta: str) -> Sequence[Event]:
        """Keep it."""
        self.parts.append(delta)
        return ()

    def close(self) -> Sequence[Event]:
        """Join."""
        return [("content", "".join(self.parts))]


class RefFind(RefConcat):
    """Keeps the deltas, then looks for each marker in the whole text: a one-shot lower bound."""

    name = "ref-find"
    markers = (
        *("<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<atem:function_calls>"),
        *("<atem:invoke", "</atem:invoke>", "<atem:parameter", "</atem:parameter>"),
        "</atem:function_calls>",
    )

    def close(self) -> Sequence[Event]:
        """Find every marker."""
        text = "".join(self.parts)
        hits: list[tuple[int, str]] = []
        for marker in self.markers:
            at = text.find(marker)
            while at >= 0:
                hits.append((at, marker))
                at = text.find(marker, at + len(marker))
        hits.sort()
        return [("content", text)]


class RefEvent(Adapter):
    """The least that a streaming parser in Python does: one ``find`` and one event per delta."""

    name = "ref-event"

    def feed(self, delta: str) -> Sequence[Event]:
        """Look for a marker, pass the delta on either way."""
        if delta.find("<") < 0:
            return [("content", delta)]
        return [("content", delta)]


# --------------------------------------------------------------------- atem


class Atem(Adapter):
    """This package, as its users pull from it."""

    name = "atem"
    package: ClassVar[Any]

    @classmethod
    def load(cls) -> str:
        """Import atem and what its first call would import."""
        import atem

        atem.parse("", tools=[])
        cls.package = atem
        return str(atem.__version__)

    def events(self, deltas: Iterable[str]) -> Iterator[Event]:
        """atem's events as tuples."""
        for event in self.package.parse_stream(deltas, tools=self.tools):
            yield from self.plain(event)

    def consume(self, deltas: Iterable[str]) -> None:
        """Pull and drop."""
        for _ in self.package.parse_stream(deltas, tools=self.tools):
            pass

    def timed(self, deltas: list[str], limit: float) -> int:
        """Pull and drop; never cut short, as nothing here is quadratic."""
        del limit
        self.consume(deltas)
        return len(deltas)

    def plain(self, event: Any) -> Sequence[Event]:
        """One event of atem as tuples; those without text or call give none."""
        match type(event).__name__:
            case "ReasoningDelta":
                return [("reasoning", event.text)]
            case "ContentDelta":
                return [("content", event.text)]
            case "CallStart":
                return [("call", event.index, event.name)]
            case "ArgumentsDelta":
                return [("args", event.index, event.json)]
            case "CallEnd":
                return [("final", event.index, event.call.arguments)]
            case "CallRejected" if event.index is not None:
                return [("drop", event.index)]
        return ()


# ------------------------------------------------------------------- folding


def fold(events: Iterable[Event]) -> dict[str, Any]:
    """Events to the form of ``Stream.truth``.

    An index that begins twice is two calls, so that a parser which uses one
    again isn't credited with a merged call.
    """
    text: dict[str, list[str]] = {"reasoning": [], "content": []}
    calls: list[dict[str, Any]] = []
    current: dict[Any, dict[str, Any]] = {}
    for kind, key, *rest in events:
        if kind in text:
            text[kind].append(key)
        elif kind == "drop":
            calls.remove(current.pop(key))
        elif kind == "call" or key not in current:
            current[key] = {"name": rest[0] if kind == "call" else None, "json": [], "final": None}
            calls.append(current[key])
        if kind == "args":
            current[key]["json"].append(rest[0])
        elif kind == "final":
            current[key]["final"] = rest[0]
    return {kind: "".join(parts) for kind, parts in text.items()} | {
        "calls": [{"name": call["name"], "arguments": arguments(call)} for call in calls]
    }


def arguments(call: dict[str, Any]) -> Any:
    """A folded call's arguments; None where its pieces are no JSON."""
    if call["final"] is not None:
        return call["final"]
    try:
        return json.loads("".join(call["json"]))
    except ValueError:
        return None
