"""Work grows with the input, not with its square (docs/parser.md, "Memory and time"; wire_format 5.5, 8).

What is counted, because all else the parser does is a constant number of steps for each of it:

- looked: characters that a lexer goes over, up to the end of its match or of the text it searches;
- read: characters handed to a reading of a tool body, to a header and to a boundary;
- copied: characters cut out of a chunk (a ``str`` that counts its slices stands for the chunk);
- listed: invokes and parameters copied from the lists in which they are kept.

A count of them all is the work. It does not depend on the machine, so growth can be held to a tenth.
What it can't see, such as a walk over the deleted front of a dict, is left to a rough timing below.

No character is read more than four times (once, and again after each of three refutations of
wire_format 5.4); in each of these passes two lexers may look at it, and two readings read it.
"""

from __future__ import annotations

import gc
from collections import Counter
from functools import cache
from itertools import accumulate
from time import process_time
from typing import Any, ClassVar

import pytest

import atem
from atem import wire
from atem.parser import boundary, calls, header, lexer, scanner
from tests.parser.strategies import BOUNDARY, TOOLS, quoted_block, transcript

PASSES = 4
LOOKS = READINGS = 2
HELD = max(map(len, (*wire.FRAMING, *lexer.TAGS)))
"""A tail that is held is looked at again with each token, and is shorter than this."""

PING = '<atem:invoke name="ping"></atem:invoke>'
INVOKE = '<atem:invoke name="note">'
VALUE = f'{INVOKE}<atem:parameter name="body">'
END = "</atem:parameter></atem:invoke>"
TO_NOTE = " to=note<|message|>"
NOTE = TO_NOTE + VALUE
DOUBT = f"{BOUNDARY} to=user<|message|>"
"""A place where a tool body may end."""


class Stream:
    """A hostile text of any size: ``unit`` over and over, between a beginning and an end.

    ``then`` and its ``second`` unit, as often again, may stand before the end.
    """

    def __init__(self, unit: str, before: str = "", after: str = "", **options: Any) -> None:
        self.unit, self.before, self.after = unit, before, after
        self.then, self.second = options.pop("then", ""), options.pop("second", "")
        self.options = options

    def text(self, size: int) -> str:
        """About ``size`` characters. ``{n}`` in the unit is its number."""
        count = size // len(self.unit + self.second)
        units = (self.unit.replace("{n}", str(number)) for number in range(count))
        return "".join([self.before, *units, self.then, self.second * count, self.after])


class Levels(Stream):
    """Undecided messages in one another, one more than text may be read again."""

    def text(self, size: int) -> str:
        return BOUNDARY.join([NOTE + super().text(size // (PASSES + 1))] * (PASSES + 1))


PARAMETER = '<atem:parameter name="k{n}">v</atem:parameter>\n'
HALF_BLOCK = quoted_block("note", "x")[:-60]

STREAMS = {
    # Undecided messages.
    "abandoned calls": Stream(f"{NOTE}x{BOUNDARY}"),
    "four levels of abandoned calls": Levels("high water "),
    "four levels that quote": Levels(transcript("note", "v", "<|eot|>")),
    "transcripts in a value": Stream(transcript("note", "v", "<|eot|>"), NOTE, f"{END}<|eot|>"),
    "transcripts in a value left open": Stream(transcript("note", "v", "<|eot|>"), NOTE),
    "half blocks in a value": Stream(BOUNDARY + HALF_BLOCK, NOTE, f"{END}<|eot|>"),
    "ends in a value": Stream(DOUBT, NOTE, f"{END}<|eot|>"),
    "ends in a value left open": Stream(DOUBT, NOTE),
    "ends behind many invokes": Stream(PING, TO_NOTE, f"{END}<|eot|>", then=VALUE, second=DOUBT),
    "ends behind many invokes, left open": Stream(PING, TO_NOTE, then=VALUE, second=DOUBT),
    "ends behind many parameters": Stream(
        PARAMETER, f"{TO_NOTE}{INVOKE}", END, then='<atem:parameter name="body">', second=DOUBT
    ),
    "ends behind many blocks": Stream(quoted_block(), TO_NOTE, then=f"{VALUE}x", second=DOUBT),
    "closers behind an end": Stream("</atem:parameter> ", NOTE + DOUBT),
    # Near-markers.
    "beginnings of markers": Stream("<|eo</atem:paramete<atem:parameter x to=", NOTE),
    "beginnings of markers in a thought": Stream("<|eo <|star xto= to=", " to=self<|message|>"),
    "beginnings of markers in an answer": Stream("<|eo<|end_of_text|", " to=user<|message|>"),
    "beginnings of closers": Stream("</atem:function_calls</atem:paramete", NOTE),
    "openers of no tag": Stream("<atem:parameter x", NOTE),
    "openers that end nowhere": Stream(f"<atem:parameter {'x' * 1000}", NOTE),
    "angles": Stream("<", NOTE),
    "addresses": Stream(" to=x y", " to=self<|message|>"),
    "addresses of nobody": Stream(" to= ", " to=self<|message|>"),
    "addresses of a tool": Stream(" to=ping<|message|> ", " to=self<|message|>"),
    "addresses inside words": Stream("xto=", " to=self<|message|>"),
    "headers in a thought": Stream(
        "<|start|>assistant to=ping<|message|> x", " to=self<|message|>"
    ),
    "starts in a thought": Stream("<|start|>,", " to=self<|message|>"),
    "starts in a value": Stream("<|start|>,", NOTE),
    "starts": Stream("<|start|>"),
    "framing in a tag": Stream("<|message|>", ' to=note<|message|><atem:invoke name="'),
    "framing in a tag in a value": Stream(f'<atem:parameter name="{"<|message|>" * 50}', NOTE),
    # Whitespace and terminators.
    "blanks after a terminator": Stream(" ", " to=user<|message|>x<|eom|>", "x"),
    "blanks after many terminators": Stream(f"<|eom|>{' ' * 250}", " to=user<|message|>"),
    "blanks after a closer": Stream(" ", f"{NOTE}</atem:parameter>", END),
    "blanks after many closers": Stream(f"</atem:parameter>{' ' * 250}", NOTE, END),
    "blanks before a header": Stream(" \n", f" to=ping<|message|>{PING}<|eom|>", "<|start|>user"),
    "blanks before the first header": Stream(" ", "", "to=user<|message|>x"),
    "blanks in headers": Stream(f"<|eom|><|start|>{' ' * 240}", " to=user<|message|>x"),
    "terminators in an answer": Stream("<|eom|>", " to=user<|message|>", "x"),
    "terminators in a value": Stream("<|eom|> ", NOTE),
    "terminators in a header": Stream("<|eot|>", f"x{BOUNDARY}"),
    "terminators and text": Stream("<|eom|>x", " to=user<|message|>"),
    "terminators and starts": Stream("<|eom|><|start|>,", " to=user<|message|>"),
    "boundaries": Stream(BOUNDARY),
    # Values that quote tags.
    "closers in a value": Stream("</atem:parameter>x", NOTE, f"{END}<|eot|>"),
    "openers in a value": Stream('<atem:parameter name="k">', NOTE, f"{END}<|eot|>"),
    "parameters in a value": Stream(PARAMETER, NOTE, f"{END}<|eot|>"),
    "blocks in a value": Stream(quoted_block("note", "v"), NOTE, f"{END}<|eot|>"),
    # Many of something.
    "parameters": Stream(PARAMETER, TO_NOTE + INVOKE, "</atem:invoke>"),
    "typed parameters": Stream(
        PARAMETER, ' to=typed<|message|><atem:invoke name="typed">', "</atem:invoke>"
    ),
    "one parameter repeated": Stream(
        '<atem:parameter name="body">v</atem:parameter>',
        TO_NOTE + INVOKE,
        "</atem:invoke>",
    ),
    "invokes": Stream(PING, " to=ping<|message|>"),
    "invokes in a malformed message": Stream(PING, " to=ping<|message|>", "<atem:invoke>"),
    "invokes of an unknown tool": Stream(PING.replace("ping", "launch"), " to=ping<|message|>"),
    "invokes that are taken back": Stream(PING, " to=ping<|message|>", f"{VALUE}{DOUBT}{END}"),
    "open invokes": Stream('<atem:invoke name="ping">', " to=ping<|message|>"),
    "tiny answers": Stream(f" to=user<|message|>x{BOUNDARY}"),
    "tiny thoughts": Stream(f" to=self<|message|>x{BOUNDARY}"),
    "tiny calls": Stream(f" to=ping<|message|>{PING}{BOUNDARY}"),
    "tiny calls in thoughts": Stream(f" to=self<|message|>x to=ping<|message|>{PING}{BOUNDARY}"),
    "tiny texts for nobody": Stream(f" to=launch<|message|>hi{BOUNDARY}"),
    "blocks without a header": Stream(f"{quoted_block()} x ", recover={"headerless"}),
    "tiny blocks without a recipient": Stream(
        f"<|message|>{quoted_block()}{BOUNDARY}", recover={"headerless"}
    ),
    "one tag without an end": Stream("x", " to=ping<|message|><atem:invoke "),
    "a long value past the bound": Stream("x", NOTE, max_call_chars=1000),
}


# ---- The ledger ------------------------------------------------------------------------------


class Counted(str):
    """A chunk that counts the characters cut out of it, and those that are searched in it."""

    __slots__ = ("ledger",)
    ledger: Ledger

    def find(self, part: str, start: int, end: int) -> int:
        found = super().find(part, start, end)
        self.ledger.work["looked"] += (end if found < 0 else found) - start
        return found

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        self.ledger.work["copied"] += len(part)
        return part


class CountedList(list):
    """A list that counts the items copied from it."""

    work: ClassVar[Counter[str]] = Counter()

    def __iter__(self):
        self.work["listed"] += len(self)
        return super().__iter__()

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(key, slice):
            self.work["listed"] += len(found)
        return found


class Ledger:
    """The work of one parser. ``passes`` are the edges of the stretches of text it scanned."""

    def __init__(self) -> None:
        self.work: Counter[str] = Counter()
        self.passes: Counter[int] = Counter()
        self.readings: dict[int, tuple[Any, int]] = {}

    @property
    def total(self) -> int:
        return sum(self.work.values())

    @property
    def most_passes(self) -> int:
        """How often the character was scanned that was scanned most often."""
        return max(accumulate(self.passes[place] for place in sorted(self.passes)))

    def scanned(self, start: int, end: int) -> None:
        self.passes[start] += 1
        self.passes[end] -= 1

    def read(self, reading: Any, text: str, start: int) -> None:
        """A reading goes on, and never back."""
        self.work["read"] += len(text)
        _, reached = self.readings.get(id(reading), (None, 0))
        assert start >= reached
        self.readings[id(reading)] = reading, start + len(text)


def watch_lexers(patch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    def watched(search: Any, farthest: int | None = None) -> Any:
        def look(text: str, pos: int = 0, *end: int) -> Any:
            found = search(text, pos, *end)
            stop = min([len(text), *end]) if found is None else found.end()
            if farthest is not None:  # a match that fails has not gone on
                stop = min(stop, pos + farthest)
            ledger.work["looked"] += stop - pos
            return found

        return look

    for one in vars(lexer).values():
        if isinstance(one, lexer.Lexer):
            patch.setattr(one, "search", watched(one.search))
            patch.setattr(one, "match", watched(one.match, HELD))
    patch.setattr(scanner, "_search_tool", lexer.TOOL.search)


def watch_readers(patch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    def reading(method: Any) -> Any:
        def read(self: Any, text: str, start: int) -> None:
            ledger.read(self, text, start)
            method(self, text, start)

        return read

    def taking(method: Any) -> Any:
        def take(self: Any, text: str, pos: int, end: int, **how: Any) -> int:
            reached = method(self, text, pos, end, **how)
            ledger.work["read"] += reached - pos
            return reached

        return take

    patch.setattr(calls.Reading, "text", reading(calls.Reading.text))
    patch.setattr(calls.Reading, "tag", reading(calls.Reading.tag))
    patch.setattr(header.Header, "take", taking(header.Header.take))
    patch.setattr(boundary.Boundary, "take", taking(boundary.Boundary.take))


def watch_lists(patch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    start, invoke = calls.Reading.__init__, calls.Invoke

    def begin(self: Any, *arguments: Any) -> None:
        start(self, *arguments)
        self.invokes = CountedList()

    patch.setattr(CountedList, "work", ledger.work)
    patch.setattr(calls.Reading, "__init__", begin)
    patch.setattr(calls, "Invoke", lambda *a: invoke(*a, parameters=CountedList()))


def watch_passes(patch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    push = scanner.Scanner._push

    def pushed(self: Any, text: str, plain: bool) -> None:
        ledger.scanned(self._next, self._next + len(text))
        push(self, text, plain)

    patch.setattr(scanner.Scanner, "_push", pushed)


def measured(stream: Stream, text: str, size: int) -> Ledger:
    """The ledger of a text in chunks of ``size`` characters, or in one for 0."""
    ledger = Ledger()
    tokens = [text[at : at + size] for at in range(0, len(text), size)] if size else [Counted(text)]
    for token in tokens if not size else ():
        token.ledger = ledger
    with pytest.MonkeyPatch.context() as patch:
        for watch in (watch_lexers, watch_readers, watch_lists, watch_passes):
            watch(patch, ledger)
        for _event in atem.parse_stream(tokens, tools=list(TOOLS), **stream.options):
            pass
    return ledger


# ---- The law ---------------------------------------------------------------------------------

SIZES = (6_000, 12_000, 24_000)
CHUNKS = {"one chunk": 0, "four characters": 4, "one character": 1}
chunked = pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS)
hostile = pytest.mark.parametrize("name", STREAMS)


@cache
def told(name: str, chunk: int, size: int) -> tuple[float, int]:
    """Work for each character, and how often the one that was scanned most was scanned."""
    text = STREAMS[name].text(size)
    ledger = measured(STREAMS[name], text, chunk)
    return ledger.total / len(text), ledger.most_passes


@chunked
@hostile
def test_twice_the_text_is_at_most_a_tenth_more_than_twice_the_work(name, chunk):
    one, two, four = (told(name, chunk, size)[0] for size in SIZES)
    assert two <= 1.1 * one
    assert four <= 1.1 * two


@chunked
@hostile
def test_no_character_is_read_more_than_four_times(name, chunk):
    for size in SIZES:
        work, passes = told(name, chunk, size)
        assert passes <= PASSES
        # One character at a time, those of a marker are looked at until it is whole.
        assert work <= PASSES * (LOOKS + READINGS) + HELD // 2 * (chunk == 1)


def test_the_streams_are_hostile():
    """Some make the parser read as often as it ever may, some bring thousands of events."""
    assert told("four levels of abandoned calls", 0, SIZES[0])[1] == PASSES
    for name in ("invokes", "parameters", "tiny calls", "one parameter repeated"):
        stream = STREAMS[name]
        events = list(atem.parse_stream([stream.text(240_000)], tools=list(TOOLS)))
        assert len(events) > 5_000


def verdict_seconds(count: int) -> float:
    """Processor time of the verdict on so many calls that were announced; the best of three."""
    best = float("inf")
    for _ in range(3):
        parser = atem.Parser(tools=list(TOOLS))
        parser.feed(f" to=ping<|message|>{PING * count}")
        gc.collect()
        start = process_time()
        assert len(parser.feed("<atem:invoke>") + parser.close()) == count + 2
        best = min(best, process_time() - start)
    return best


@pytest.mark.scale
def test_calls_are_taken_back_in_time_with_their_number():
    """A walk over what was deleted from the front of a dict is no work that can be counted."""
    assert verdict_seconds(40_000) < 8 * 2.5 * verdict_seconds(5_000)
