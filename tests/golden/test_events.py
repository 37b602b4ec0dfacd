"""The events of some turns, as docs/parser.md says they come: what, in which order, over which text.

Each expected event is the text it covers, its name and some of its fields. A
null text isn't compared; where none is null, the texts together are the turn.
"""

from __future__ import annotations

import json

import pytest

import atem
from tests.golden.expectation import ROOT
from tests.parser.folding import joined, tiled

TURNS = json.loads((ROOT / "tests" / "golden" / "events.json").read_text("utf-8"))
PORT = {"port": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = [
    {"name": "tide_at", "parameters": {"type": "object", "properties": PORT}},
    {"name": "list_ports", "parameters": {"type": "object", "properties": {}}},
]


def text_of(turn):
    return turn.get("text") or "".join(text for text, _, _ in turn["events"])


def fields(event):
    """An event's fields by name, with the reason of a rejection beside them."""
    return event._asdict() | {"reason": getattr(getattr(event, "rejected", None), "reason", None)}


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn["name"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_events_are_these_whatever_the_size_of_the_pieces(turn, size):
    text = text_of(turn)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    events = list(atem.parse_stream(parts, tools=TOOLS, reason=turn.get("reason", "stop")))
    found = [
        [
            text[event.start : event.end] if covered is not None else None,
            type(event).__name__,
            {key: fields(event)[key] for key in wanted},
        ]
        for event, (covered, _, wanted) in zip(joined(events), turn["events"], strict=True)
    ]
    assert found == turn["events"]


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn["name"])
def test_the_spans_of_the_events_cover_the_text_once(turn):
    text = text_of(turn)
    tiled(atem.parse_stream([text], tools=TOOLS, reason=turn.get("reason", "stop")), len(text))


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
