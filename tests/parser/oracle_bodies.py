"""The oracle's boundaries, and one reading of a tool body.

Rules: plain functions over ``(text, at, end)``, written from wire_format 3, 5.1 and 5.5
alone; a body knows no other message, no tool and no option.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import regex

from atem import wire

MAX_HEADER = 256

_W = f"[{wire.WHITESPACE}]"
_TERM = "|".join(map(regex.escape, wire.TERMINATORS))
_START, _MESSAGE = regex.escape(wire.START), regex.escape(wire.MESSAGE)
_TO = rf"to=([^{wire.WHITESPACE}<]+)"
_ROLES = "|".join(wire.OTHER_ROLES)

_BLANK = regex.compile(f"{_W}*")
_UNIT = regex.compile(f"{_TERM}|{_W}")
_RUN = regex.compile(f"(?:{_TERM}|{_W})+")
_TERMINATOR = regex.compile(_TERM)
FRAMED = regex.compile(f"{_START}{_W}*(?:assistant)?{_W}*(?:{_TO})?{_W}*{_MESSAGE}")
BARE = regex.compile(f"{_TO}{_W}*{_MESSAGE}")
IMPLICIT = regex.compile(
    f"(?P<lead>{_W}*)(?:{_START}{_W}*(?:assistant)?{_W}*)?(?:{_TO}{_W}*)?{_MESSAGE}"
)
OTHER_ROLE = regex.compile(f"{_START}{_W}*(?:{_ROLES})")
_FOLLOWS = regex.compile(f"{_START}{_W}*(?:assistant|{_ROLES}|to=|{_MESSAGE})")

_FUNCTION_CALLS = (wire.BLOCK_OPEN, wire.BLOCK_CLOSE)
_TAG_ENDS = rf"(?=[{wire.WHITESPACE}>/])"
_INVOKES = regex.compile(wire.INVOKE_OPEN + _TAG_ENDS)
_PARAMETERS = regex.compile(wire.PARAMETER_OPEN + _TAG_ENDS)
_TAG = regex.compile(
    f"{wire.BLOCK_OPEN}|{wire.BLOCK_CLOSE}|{wire.INVOKE_CLOSE}|{wire.PARAMETER_CLOSE}"
    f"|(?:{wire.INVOKE_OPEN}|{wire.PARAMETER_OPEN}){_TAG_ENDS}"
)
_OPENER = regex.compile(
    rf"(?:{wire.INVOKE_OPEN}|{wire.PARAMETER_OPEN}){_TAG_ENDS}(?:"
    rf'{_W}(?:[^<>]*?{_W})??name="(?P<name>(?:{_MESSAGE}|[^"<>])*)"[^<>]*|[^<>]*)>'
)
_CONTINUES = regex.compile(f"{wire.INVOKE_CLOSE}|{wire.PARAMETER_OPEN}{_TAG_ENDS}")


# ---- Boundaries (wire_format 5.1) ------------------------------------------------------


def blank_end(text: str, at: int) -> int:
    """Where the whitespace at ``at`` ends."""
    end: int = _BLANK.match(text, at).end()
    return end


def is_prefix(pattern: Any, part: str) -> bool:
    """Whether ``part`` could still grow into ``pattern``, without being one."""
    found = pattern.fullmatch(part, partial=True)
    return bool(found is not None and found.partial)


def run_end(text: str, at: int) -> tuple[int, bool]:
    """The end of the run of terminators and whitespace at ``at``, and whether it is short enough."""
    end = _RUN.match(text, at).end()
    if end - at <= MAX_HEADER:
        return end, True
    end = at
    while (unit := _UNIT.match(text, end)) and unit.end() - at <= MAX_HEADER:
        end = unit.end()
    return end, False


def header_follows(text: str, at: int) -> bool:
    """Whether the end of the stream or the beginning of a header stands at ``at``."""
    if (found := _FOLLOWS.match(text, at)) is not None:
        return bool(found.end() - at <= MAX_HEADER)
    rest = text[at:]
    return not rest or (len(rest) <= MAX_HEADER and is_prefix(_FOLLOWS, rest))


def terminators(text: str, at: int) -> list[int]:
    """Where the structural terminators from ``at`` on stand, the first of each run."""
    places = []
    while (found := _TERMINATOR.search(text, at)) is not None:
        end, short = run_end(text, found.start())
        if short and header_follows(text, end):
            places.append(found.start())
        at = end
    return places


def headers(text: str, at: int, pattern: Any) -> list[Any]:
    """The matches of a header pattern from ``at`` on that keep within ``MAX_HEADER``."""
    found = pattern.finditer(text, at, overlapped=True)
    return [m for m in found if m.end() - m.start() <= MAX_HEADER]


# ---- One reading of a tool body (wire_format 5.5) --------------------------------------


@dataclass
class Invoke:
    """An invoke. ``end`` is None while it is open, ``name`` is None while its tag is."""

    start: int
    name: str | None
    end: int | None = None
    parameters: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Reading:
    """One reading of a body. ``tail`` is what stands behind the last block or invoke."""

    invokes: list[Invoke] = field(default_factory=list)
    state: str = "complete"
    prose: bool = False
    tail: bool = False
    wrapper_open: bool = False
    tag_open: bool = False


class Opener(NamedTuple):
    """An opening tag: "good", "bad", or "open" at the end of the stream."""

    state: str
    end: int
    name: str


def opener(text: str, at: int, end: int) -> Opener:
    """The opening tag of an invoke or a parameter at ``at``, in a body that ends at ``end``."""
    limit = min(end, at + wire.MAX_TAG)
    if (found := _OPENER.match(text, at, limit)) is not None:
        name = (found["name"] or "").replace(wire.MESSAGE, "")
        # Choice: two names in one tag are nobody's guess.
        twice = len(re.findall(rf'{_W}name="', found[0])) > 1
        good = name and not twice and not found[0].endswith("/>")
        return Opener("good" if good else "bad", found.end(), name)
    if end == len(text) and end - at < wire.MAX_TAG and is_prefix(_OPENER, text[at:end]):
        return Opener("open", end, "")
    return Opener("bad", end, "")


def closes(text: str, closer: Any, end: int) -> bool:
    """Whether what follows a ``</atem:parameter>`` lets it end a value."""
    behind = blank_end(text, closer.end())
    if behind - closer.start() > MAX_HEADER:
        return False
    return _CONTINUES.match(text, behind, end) is not None


def value_end(text: str, at: int, end: int, *, nested: bool) -> Any:
    """The closer that ends the value at ``at``, or None."""
    depth = 0
    for mark in regex.finditer(
        f"{wire.PARAMETER_CLOSE}|{wire.PARAMETER_OPEN}{_TAG_ENDS}", text[:end], pos=at
    ):
        if mark[0] == wire.PARAMETER_OPEN:
            depth += nested and opener(text, mark.start(), end).state == "good"
        elif depth:
            depth -= 1
        elif closes(text, mark, end):
            return mark
    return None


class BodyReader:
    """Walks the body ``text[at:end]`` once, by one of the two readings."""

    # Level -> the tags that may stand there.
    LEGAL: ClassVar[dict[str, tuple[str, str]]] = {
        "top": (wire.BLOCK_OPEN, wire.INVOKE_OPEN),
        "block": (wire.INVOKE_OPEN, wire.BLOCK_CLOSE),
        "invoke": (wire.PARAMETER_OPEN, wire.INVOKE_CLOSE),
    }

    def __init__(self, text: str, at: int, end: int, *, nested: bool) -> None:
        self.text, self.at, self.end, self.nested = text, at, end, nested
        self.level = self.outer = "top"
        self.result = Reading()

    def read(self) -> Reading:
        self._prose()
        while self.at < self.end and self.result.state == "complete":
            self.at = min(blank_end(self.text, self.at), self.end)
            if self.at < self.end:
                self._tag()
        if self.result.state == "complete" and self.level == "invoke":
            self.result.state = "open"
        self.result.wrapper_open = "block" in (self.level, self.outer)
        return self.result

    def _prose(self) -> None:
        first = _TAG.search(self.text, self.at, self.end)
        if first is None:
            return self._rest()
        self.result.prose = bool(self.text[self.at : first.start()].strip(wire.WHITESPACE))
        self.at = first.start()
        return None

    def _tag(self) -> None:
        found = _TAG.match(self.text, self.at, self.end)
        if found is None or found[0] not in self.LEGAL[self.level]:
            return self._rest()
        if found[0] in _FUNCTION_CALLS:
            self.level = self.outer = "block" if found[0] == wire.BLOCK_OPEN else "top"
            self.at = found.end()
        elif found[0] == wire.INVOKE_CLOSE:
            self.result.invokes[-1].end = self.at = found.end()
            self.level = self.outer
        else:
            self._opener(opener(self.text, self.at, self.end), found[0] == wire.INVOKE_OPEN)
        return None

    def _opener(self, tag: Opener, is_invoke: bool) -> None:
        if tag.state == "bad":
            self.result.state = "failed"
            return
        if is_invoke:
            self.level = "invoke"
            self.result.invokes.append(Invoke(self.at, tag.name or None))
        self.at = tag.end
        if tag.state == "open":
            self.result.tag_open = True
        elif not is_invoke:
            self._value(tag)

    def _value(self, tag: Opener) -> None:
        closer = value_end(self.text, tag.end, self.end, nested=self.nested)
        if closer is None:
            self.at = self.end
            return
        value = self.text[tag.end : closer.start()]
        self.result.invokes[-1].parameters.append((tag.name, value))
        self.at = closer.end()

    def _rest(self) -> None:
        """What is no legal tag: prose at the top, else the beginning of a tag, else a failure."""
        rest = self.text[self.at : self.end]
        part = rest[rest.rfind("<") :] if "<" in rest else ""
        starts = any(legal.startswith(part) for legal in self.LEGAL[self.level])
        if self.result.invokes and self.level == "top" and rest.removesuffix(part).strip():
            starts = False  # behind prose no tag is legal
        self.result.tag_open = bool(part) and starts and self.end == len(self.text)
        if self.level == "top" and not _TAG.search(rest):
            self.result.tail = bool(rest.strip(wire.WHITESPACE)) and bool(self.result.invokes)
            self.result.prose |= bool(rest.strip(wire.WHITESPACE))
        elif not (self.result.tag_open and part == rest):
            self.result.state = "failed"
        self.at = self.end


def balanced(body: str) -> bool:
    """Not more openers than closers, values included (wire_format 5.4)."""
    return len(_INVOKES.findall(body)) <= body.count(wire.INVOKE_CLOSE) and len(
        _PARAMETERS.findall(body)
    ) <= body.count(wire.PARAMETER_CLOSE)


def reading(text: str, at: int, end: int, *, nested: bool) -> Reading:
    """One reading of ``text[at:end]``, with the rules for the prose around its blocks.

    Choice: prose is judged when the reading is complete; an open invoke stays open.
    """
    result = BodyReader(text, at, end, nested=nested).read()
    if result.state == "complete" and result.prose and not balanced(text[at:end]):
        result.state = "failed"
    return result
