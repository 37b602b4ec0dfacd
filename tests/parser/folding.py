"""Events as the laws of the parser compare them, what holds for all of them, and what texts hold.

Rules: through the public names of ``atem`` alone. ``merged`` says what of a sequence may not
depend on how the input was cut, ``checked`` asserts what docs/parser.md promises of any sequence,
``facts`` is what readers must agree on, ``carried`` and its neighbours say in terms of the
format alone which texts it brings through.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

import atem
from atem import Piece, wire
from tests.parser.strategies import MARKERS, transcript

if TYPE_CHECKING:
    from collections.abc import Iterable

DELTAS = {atem.ReasoningDelta: "text", atem.ContentDelta: "text", atem.ArgumentsDelta: "json"}
"""Kind of delta -> the field that grows."""


def examples(count: int) -> settings:
    """``count`` examples by default, and as many times more as the profile asks for."""
    return settings(max_examples=count * settings.default.max_examples // 100, deadline=None)


patience = pytest.mark.timeout(60 * max(1, settings.default.max_examples // 100))
"""As ``examples``, so that a test that looks longer may."""


# ---- Ways to cut an input ------------------------------------------------------------------


def sliced(whole: Any, places: Iterable[int]) -> list[Any]:
    """``whole``, a ``str`` or ``bytes``, cut at ``places``; a place given twice is an empty part."""
    edges = [0, *sorted(place for place in places if place <= len(whole)), len(whole)]
    return [whole[start:end] for start, end in pairwise(edges)]


def runs(text: str) -> list[str]:
    """``text`` with each framing marker a part of its own."""
    parts, at = [], 0
    while at < len(text):
        places = [(text.find(mark, at), mark) for mark in MARKERS if mark in text[at:]]
        start, mark = min(places, default=(len(text), ""))
        parts += [text[at:start], mark]
        at = start + len(mark)
    return [part for part in parts if part]


def as_pieces(text: str) -> list[Piece]:
    """``text`` as tokens in which every marker is the real special token."""
    return [Piece(part, special=part in MARKERS) for part in runs(text)]


def trained() -> Tokenizer:
    """A byte-level BPE with the control tokens as special tokens, trained on a little wire text."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    corpus = [transcript("note", "<|eom|> high water", ""), " to=self to=user 潮汐"] * 20
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in wire.CONTROL])
    return tok


places = st.lists(st.integers(0, 600), max_size=12)


# ---- Events --------------------------------------------------------------------------------


def joined(events: Iterable[Any]) -> list[Any]:
    """Events with adjacent deltas of one kind and index as one.

    The newline between two reasoning bodies, told by its empty span, stays an event of its own.
    """
    found: list[Any] = []
    last = None
    for event in events:
        kind = _joins(event)
        if kind is not None and kind == last:
            field = DELTAS[type(event)]
            grown = getattr(found[-1], field) + getattr(event, field)
            found[-1] = found[-1]._replace(end=event.end, **{field: grown})
        else:
            found.append(event)
        last = kind
    return found


def merged(events: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What may not depend on chunking: ``joined``, as tuples without ids."""
    return [
        (type(event).__name__, *(_plain(event, field) for field in event._fields))
        for event in joined(events)
    ]


def _joins(event: Any) -> tuple[Any, ...] | None:
    """What a neighbour has to be equal in, to be one delta with ``event``."""
    if type(event) not in DELTAS or is_newline(event):
        return None
    # A tuple has a method of that name.
    return type(event), event.index if isinstance(event, atem.ArgumentsDelta) else None


def is_newline(event: Any) -> bool:
    """Whether it is what stands between two bodies of reasoning."""
    return isinstance(event, atem.ReasoningDelta) and event.start == event.end


def _plain(event: Any, name: str) -> Any:
    """A field without random ids, and with the spans that equality of calls leaves out."""
    value = getattr(event, name)
    if name == "id":
        return None
    if name in ("call", "rejected") and value is not None:
        return repr(value).replace(repr(value.id), "id")  # tells True, 1 and 1.0 apart
    return value


def without_tokens(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """``merged`` events, but for the number of tokens in a body."""
    return [
        (name, rest[0], *rest[2:]) if name == "MessageEnd" else (name, *rest)
        for name, *rest in told
    ]


def facts(turn: Any) -> str:
    """What all readers of a turn must agree on; as text, which tells 1, 1.0 and True apart."""
    calls = [(call.name, call.arguments) for call in turn.calls]
    rejected = [rejected.reason for rejected in turn.rejected]
    return repr((turn.reasoning, turn.content, calls, rejected, turn.complete))


def ran(turn: Any) -> list[str]:
    """The calls of a turn, by name and arguments."""
    return [repr((call.name, call.arguments)) for call in turn.calls]


# ---- What the format can carry ----------------------------------------------------------------

CLOSER = "</atem:parameter>"

_W = r"[ \t\r\n]*"
_TERMINATORS = r"<\|(?:eom|eot|end_of_text)\|>"
_ENDS_A_VALUE = re.compile(rf"{CLOSER}{_W}(?:</atem:invoke>|<atem:parameter[ \t\r\n>/])")
_ENDS_A_MESSAGE = re.compile(
    rf"{_TERMINATORS}(?:{_TERMINATORS}|[ \t\r\n])*"
    rf"(?:$|<\|start\|>{_W}(?:assistant|user|tool|system|developer|to=|<\|message\|>))"
)
_LEAVES_REASONING = re.compile(
    rf"<\|start\|>{_W}(?:assistant)?{_W}(?:to=(?:self|user|commentary))?{_W}<\|message\|>"
    rf"|to=[^ \t\r\n<]+{_W}<\|message\|>{_W}<atem:"
)
_OPENERS = {name: re.compile(rf"<atem:{name}[ \t\r\n>/]") for name in ("invoke", "parameter")}


def carried(value: str) -> bool:
    """Whether the first closer that a tag goes on behind is the value's own (wire_format 5.5)."""
    found = _ENDS_A_VALUE.search(f"{value}{CLOSER}\n</atem:invoke>")
    return found is not None and found.start() == len(value)


def balanced(value: str) -> bool:
    """Whether no tag is opened in it more often than it is closed (wire_format 5.4)."""
    return all(
        len(opener.findall(value)) <= value.count(f"</atem:{name}>")
        for name, opener in _OPENERS.items()
    )


def ends_no_message(text: str) -> bool:
    """Whether no terminator in it is structural, its own behind it included (wire_format 5.1)."""
    return _ENDS_A_MESSAGE.search(text) is None


def stays_reasoning(text: str) -> bool:
    """Whether no header in it leaves a reasoning body either (wire_format 5.3)."""
    return ends_no_message(text) and _LEAVES_REASONING.search(text) is None


# ---- What holds for every sequence (docs/parser.md, "Events") --------------------------------


def assert_tiles(spans: Iterable[Any], length: int) -> None:
    """Assert that ``(start, end)`` pairs cover ``length`` characters once, in order."""
    spans = list(spans)
    edges = [0, *(end for _, end in spans)]
    assert [start for start, _ in spans] == edges[:-1]
    assert edges == sorted(edges)
    assert edges[-1] == length


def tiled(events: Iterable[Any], length: int) -> list[Any]:
    """``events``, asserted to cover ``length`` characters once."""
    told = list(events)
    assert_tiles([(event.start, event.end) for event in told], length)
    return told


def checked(events: Iterable[Any], text: str) -> list[Any]:
    """The events of the whole of ``text``, with every promise about their order asserted."""
    told = tiled(events, len(text))
    assert [place for place, event in enumerate(told) if isinstance(event, atem.TurnEnd)] == [
        len(told) - 1
    ]
    ledger = _Ledger(text)
    for event in told:
        ledger.note(event)
    assert not ledger.open
    return told


class _Ledger:
    """The calls of a turn while their events pass."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: dict[int, tuple[Any, list[str]]] = {}
        self.used = -1
        self.ended = 0
        self.in_message = False

    def note(self, event: Any) -> None:
        note = getattr(self, type(event).__name__, None)
        if note is not None:
            note(event)

    def MessageStart(self, event: Any) -> None:  # noqa: N802 - named for the event
        assert not self.in_message
        self.in_message = True

    def MessageEnd(self, event: Any) -> None:  # noqa: N802
        assert self.in_message
        assert not self.open
        assert self._written(event).endswith(event.terminator or "")
        self.in_message = False

    def ReasoningDelta(self, event: Any) -> None:  # noqa: N802
        assert self.in_message
        assert event.text == "\n" if is_newline(event) else self._spells(event)

    def ContentDelta(self, event: Any) -> None:  # noqa: N802
        assert self.in_message
        assert self._spells(event)

    def _spells(self, event: Any) -> bool:
        return bool(event.text) and event.text == self._written(event)

    def _written(self, event: Any) -> str:
        return self.text[event.start : event.end]

    def Problem(self, event: Any) -> None:  # noqa: N802
        assert not self.open

    def CallStart(self, event: Any) -> None:  # noqa: N802
        assert self.in_message
        assert event.index > self.used
        self.used = event.index
        self.open[event.index] = event, []

    def ArgumentsDelta(self, event: Any) -> None:  # noqa: N802
        self.open[event.index][1].append(event.json)

    def CallEnd(self, event: Any) -> None:  # noqa: N802
        start, pieces = self.open.pop(event.index)
        call = event.call
        assert [getattr(start, name) for name in SAID_TWICE] == [
            getattr(call, name) for name in SAID_TWICE
        ]
        assert call.index == self.ended
        self.ended += 1
        assert "".join(pieces) == call.arguments_json
        assert call.arguments_json == json.dumps(call.arguments, ensure_ascii=False)
        written = self.text[slice(*call.span)]
        assert written.startswith("<atem:invoke")
        assert written.endswith("</atem:invoke>")

    def CallRejected(self, event: Any) -> None:  # noqa: N802
        if event.index is not None:
            start, _ = self.open.pop(event.index)
            assert event.rejected is None or event.rejected.id == start.id
        if event.rejected is not None:
            assert event.rejected.text == self.text[slice(*event.rejected.span)]


SAID_TWICE = ("id", "name", "namespace", "raw_name", "recipient")
