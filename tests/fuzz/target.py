"""The laws of the parser for whatever bytes a fuzzer makes up (docs/parser.md).

Rules: data alone decides. The first bytes choose the options, the rest is the turn: UTF-8, or a row
of markers, tags and words. It is parsed in few tokens and in many, and then: nothing raises, spans
cover the text once, one ``TurnEnd`` comes last, the events do not depend on the cuts, and what the
turn calls is what a ``CallEnd`` brought.

``python -m tests.fuzz.target --seconds 60`` searches under atheris; other arguments are libFuzzer's.
``--plain`` searches by random changes and needs no atheris, ``--show FILE`` tells what an input is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if __name__ == "__main__" and "--plain" not in sys.argv and "--show" not in sys.argv:
    import atheris  # before atem, so that its branches are seen

    with atheris.instrument_imports(include=["atem"]):
        import atem

        atem.parse("")  # brings in what is loaded late
else:
    import atem

from tests.parser.folding import checked, merged, runs, without_tokens
from tests.parser.strategies import BLANKS, BOUNDARY, MARKERS, TAGS, TOOLS, quoted_block, transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "cases" / "wire.jsonl")
    .read_text("utf-8")
    .splitlines()
]
CASE_TOOLS = {tool["function"]["name"]: tool for case in CASES for tool in case["tools"]}
LONGEST = 2000
"""Bytes of an input that is made up. A short one breaks any law that a long one does, and is understood."""

# ---- What the bytes mean: a 0 is always the default --------------------------------------------

CHOICES: dict[str, tuple[Any, ...]] = {
    "tools": (list(TOOLS), list(CASE_TOOLS.values()), []),
    "unknown": ("reject", "forward", "content", "raise"),
    "names": ("safe", "exact", "unique-leaf"),
    "arguments": ("stream", "whole"),
    "validate": ("report", "reject", "off"),
    "recover": (
        *({"reasoning"}, {"reasoning", "headerless"}, {"reasoning", "glued"}, set()),
        *({"headerless"}, {"glued"}, {"reasoning", "headerless", "glued"}),
    ),
    "opening": ({}, {"channel": "note"}, {"channel": "self"}, {"framed": True}),
    "max_header": (256, 32, 60),
    "max_call_chars": (1 << 24, 90, 1, 300),
    "strict_recipient": (False, True),
    "one_invoke_per_message": (False, True),
    "profile": ("glimmer", "spark"),
}
REASONS = ("stop", "length", "abort")
FORMS = ("text", "words")
KINDS = ("str", "bytes", "pieces")
HEAD = len(CHOICES) + 4

WORDS = (
    *MARKERS,
    *TAGS,
    *BLANKS[1:],
    *(BOUNDARY, " to=self<|message|>", " to=note<|message|>", " to=ping<|message|>", " to="),
    *('<atem:invoke name="note">', '<atem:parameter name="title">', '<atem:parameter name="k">'),
    *("<atem:parameters>", "<atem:invoke", "</atem:", "<|", "<|eo", "<|st", "assistant", "user"),
    *(
        "</atem:parameter></atem:invoke>",
        '<atem:invoke name="launch">',
        '<atem:parameter name="i">',
    ),
    *(quoted_block(), quoted_block("note", "x"), transcript("ping", None, "<|eot|>")),
    *(f"{VALUE}half{BOUNDARY}" for VALUE in (TAGS[2], TAGS[4])),
    *(
        "ping",
        "note",
        "5",
        "潮",
        "🌊",
        "\ud800",
        "</",
        ">",
        '"',
        "name=",
        " " * 250,
        "<atem:parameter ",
    ),
)


class Input(NamedTuple):
    """A turn: stretches of text (or bytes) of one kind each, where they are cut, and the options."""

    stretches: list[tuple[str, str | bytes]]
    cuts: int
    reason: str
    options: dict[str, Any]

    @property
    def text(self) -> str:
        """The text that all tokens together are."""
        parts = (part for _, part in self.stretches)
        return "".join(p if isinstance(p, str) else p.decode("utf-8", "replace") for p in parts)

    def tokens(self, *, whole: bool) -> Iterator[Any]:
        """Each stretch in one token, or in many, which may end inside a character."""
        dice = random.Random(self.cuts)
        for kind, part in self.stretches:
            at = 0
            while at < len(part):
                size = 1 + dice.randrange(1 + self.cuts % 16) ** dice.randrange(1, 3)
                if whole or kind == "special":
                    size = len(part)
                cut = part[at : at + size]
                at += size
                is_piece = kind in ("special", "plain")
                yield atem.Piece(cut, special=kind == "special") if is_piece else cut


def read(data: bytes) -> Input:
    """What ``data`` means. Any bytes mean something."""
    head, rest = data[:HEAD].ljust(HEAD, b"\0"), data[HEAD:]
    options = {
        name: choices[byte % len(choices)]
        for byte, (name, choices) in zip(head, CHOICES.items(), strict=False)
    }
    options |= options.pop("opening")
    if not options["tools"]:
        options["recover"] = options["recover"] - {"headerless"}  # refused without tools
    reason, form, kind, cuts = head[-4:]
    if FORMS[form % len(FORMS)] == "words":
        text = "".join(WORDS[byte] if byte < len(WORDS) else chr(byte) for byte in rest)
        rest = text.encode("utf-8", "surrogatepass")
    stretches = list(stretched(rest, KINDS[kind % len(KINDS)], random.Random(cuts)))
    return Input(stretches, cuts, REASONS[reason % len(REASONS)], options)


def stretched(data: bytes, kind: str, dice: random.Random) -> Iterator[tuple[str, str | bytes]]:
    """``data`` by kind; of pieces some markers are special, and some text is of no provenance."""
    text = data.decode("utf-8", "surrogateescape")
    if kind != "pieces":
        yield kind, text if kind == "str" else data
        return
    for part in runs(text):
        yield (
            dice.choice(("special", "special", "plain", "str") if part in MARKERS else PLAIN),
            part,
        )


PLAIN = ("plain", "plain", "plain", "str")


# ---- The laws ----------------------------------------------------------------------------------


def events_of(tokens: Iterator[Any], reason: str, options: dict[str, Any]) -> list[Any]:
    """The events of a turn, also of one in which unknown tools raise."""
    parser, events = atem.Parser(**options), []
    for one in tokens:
        try:
            events += parser.feed(one)
        except atem.UnknownTool:
            assert options["unknown"] == "raise"
    while not events or not isinstance(events[-1], atem.TurnEnd):
        try:
            events += parser.close(reason)
        except atem.UnknownTool:
            assert options["unknown"] == "raise"
    return events


def check(data: bytes) -> None:
    """Raise if a law does not hold for what ``data`` means."""
    given = read(data)
    text = given.text
    told = []
    for whole in (True, False):
        events = checked(events_of(given.tokens(whole=whole), given.reason, given.options), text)
        told.append(without_tokens(merged(events)))
        check_calls(events)
    assert told[0] == told[1], "the events depend on the cuts"


def check_calls(events: list[Any]) -> None:
    ended = [event.call for event in events if isinstance(event, atem.CallEnd)]
    turn = atem.collect(events)
    assert list(turn.calls) == ended
    shown = turn.to_chat_message().get("tool_calls", [])
    assert [call["id"] for call in shown] == [call.id for call in ended]
    items = [item for item in turn.to_response_items() if item["type"] == "function_call"]
    assert [item["call_id"] for item in items] == [call.id for call in ended]


# ---- Seeds, changes, and what is left of a failure ---------------------------------------------


def seeds() -> Iterator[bytes]:
    """An input for each wire case, and for some of them in other kinds of tokens."""
    for number, case in enumerate(CASES):
        head = bytearray(HEAD)
        head[0] = 1  # the tools of the cases
        head[-4] = case["stop"] == "length"
        head[-2] = number % len(KINDS)
        head[-1] = number % 256
        yield bytes(head) + case["input"].encode()


def changed(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """``data`` after a few random changes, some of which bring in a part of ``other``."""
    parts = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at, size = dice.randrange(len(parts) + 1), dice.choice((0, 1, 4, 40))
        new = (
            b"",
            bytes([dice.randrange(256)]),
            dice.choice(WORDS).encode("utf-8", "replace"),
            other[dice.randrange(len(other) + 1) :][:200],
        )
        parts[at : at + size] = dice.choice(new)
    if dice.random() < 0.5:
        parts[: HEAD - 1] = bytes(dice.choice((0, 0, 1, 2, 3)) for _ in range(HEAD - 1))
    return bytes(parts)[:LONGEST]


def failure(data: bytes) -> str:
    """Which law ``data`` breaks, "" for none."""
    try:
        check(data)
    except Exception as error:  # noqa: BLE001 - that it raises is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
    return ""


def smallest(data: bytes, failure: Callable[[bytes], str] = failure) -> bytes:
    """A shorter input, with more defaults, that fails in the same way."""
    same, size = failure(data), len(data)
    for at in range(HEAD):
        plain = data[:at] + b"\0" + data[at + 1 :]
        data = plain if failure(plain) == same else data
    while size:
        at = HEAD
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if failure(shorter) == same:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def shown(data: bytes) -> str:
    given = read(data)
    tokens = [list(given.tokens(whole=whole)) for whole in (True, False)]
    options = {k: v for k, v in given.options.items() if v != CHOICES.get(k, (None,))[0]}
    return f"{failure(data)}\n{options} {given.reason}\n{tokens[0]!r}\n{tokens[1]!r}\n{data!r}"


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def search(seconds: float, seed: int) -> int:
    """Check seeds and random changes of them for so long; 1 if a law was broken."""
    dice, pool, tried = random.Random(seed), list(seeds()), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = (
            changed(dice.choice(pool), dice.choice(pool), dice)
            if tried >= len(pool)
            else pool[tried]
        )
        tried += 1
        if failure(data):
            tell(shown(smallest(data)))
            return 1
    tell(f"{tried} inputs, no law broken")
    return 0


def main(arguments: list[str]) -> int:
    reader = argparse.ArgumentParser(prog="python -m tests.fuzz.target", allow_abbrev=False)
    reader.add_argument("--seconds", type=int, default=60)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--plain", action="store_true", help="search without atheris")
    reader.add_argument("--show", type=Path, help="tell what an input is, as small as it gets")
    given, rest = reader.parse_known_args(arguments)
    if given.show:
        tell(shown(smallest(given.show.read_bytes())))
        return 0
    if given.plain:
        return search(given.seconds, given.seed)
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds()):
            (Path(corpus) / f"{number:03}").write_bytes(data)
        limits = [f"-max_total_time={given.seconds}", f"-seed={given.seed}", f"-max_len={LONGEST}"]
        atheris.Setup([sys.argv[0], *limits, *rest, corpus], check)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
