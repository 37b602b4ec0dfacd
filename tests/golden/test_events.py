"""The events of some turns, as docs/parser.md says they come: what, in which order, over which text.

Each expected event is the text it covers, its name and some of its fields. A
null text isn't compared; where none is null, the texts together are the turn.
"""

from __future__ import annotations

import json
from itertools import groupby, pairwise

import pytest

import atem
from tests.golden.expectation import ROOT

TURNS = json.loads((ROOT / "tests" / "golden" / "events.json").read_text("utf-8"))
PORT = {"port": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = [
    {"name": "tide_at", "parameters": {"type": "object", "properties": PORT}},
    {"name": "list_ports", "parameters": {"type": "object", "properties": {}}},
]
DELTAS = {"ReasoningDelta": "text", "ContentDelta": "text", "ArgumentsDelta": "json"}


def text_of(turn):
    return turn.get("text") or "".join(text for text, _, _ in turn["events"])


def fields(event):
    """An event's fields by name, with the reason of a rejection beside them."""
    return event._asdict() | {"reason": getattr(getattr(event, "rejected", None), "reason", None)}


def merged(events):
    """``(start, end, name, fields)`` of each event, neighbouring deltas of one kind and call as one."""

    def kind(event):
        name = type(event).__name__
        return name if name in DELTAS else id(event), event._asdict().get("index")

    for _, group in groupby(events, kind):
        first, *more = group
        name, found = type(first).__name__, fields(first)
        for event in more:
            found[DELTAS[name]] += getattr(event, DELTAS[name])
        yield first.start, [first, *more][-1].end, name, found


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn["name"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_events_are_these_whatever_the_size_of_the_pieces(turn, size):
    text = text_of(turn)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    events = list(atem.parse_stream(parts, tools=TOOLS, reason=turn.get("reason", "stop")))
    found = [
        [text[start:end] if covered is not None else None, name, {key: has[key] for key in wanted}]
        for (start, end, name, has), (covered, _, wanted) in zip(
            merged(events), turn["events"], strict=True
        )
    ]
    assert found == turn["events"]


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn["name"])
def test_the_spans_of_the_events_cover_the_text_once(turn):
    text = text_of(turn)
    events = list(atem.parse_stream([text], tools=TOOLS, reason=turn.get("reason", "stop")))
    edges = [(0, 0), *((event.start, event.end) for event in events), (len(text), len(text))]
    assert all(one[1] == two[0] for one, two in pairwise(edges))


def test_the_tokens_of_a_body_are_counted_when_tokens_are_fed():
    start, message, eom, eot = (
        atem.Piece(marker, special=True)
        for marker in ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
    )
    think = [*map(atem.Piece, [" to", "=self"]), message, *map(atem.Piece, ["One", " two", "."])]
    answer = [*map(atem.Piece, ["assistant", " to=user"]), message, atem.Piece("Three.")]
    ends = [
        event.tokens
        for event in atem.parse_stream([*think, eom, start, *answer, eot])
        if isinstance(event, atem.MessageEnd)
    ]
    assert ends == [3, 1]
