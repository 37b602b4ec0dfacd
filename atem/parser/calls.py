"""The structure of a tool body: which invokes it holds and where their values end.

Rules: a :class:`Reading` sees text and tags in order and keeps positions, never
text; it knows no tool and no schema. A tool body has up to two readings
(wire_format 5.5): the first closes a value at each closer that a legal
continuation follows; the second, forked where they begin to differ, also
counts the parameters that open inside a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from .. import wire
from .states import IN_TAG, OPEN, PROSE, STRUCTURE, Place

_NAME: Final = re.compile(f'[{wire.WHITESPACE}]name="([^"]*)"')
_OPEN_NAME: Final = re.compile(f'[{wire.WHITESPACE}]name="[^"]*\\Z')

_ROOM: Final = {
    Place.INVOKE_TAG: wire.MAX_TAG - len(wire.INVOKE_OPEN),
    Place.PARAMETER_TAG: wire.MAX_TAG - len(wire.PARAMETER_OPEN),
    Place.INNER_TAG: wire.MAX_TAG - len(wire.PARAMETER_OPEN),
}
"""Characters behind a tag's name that make it malformed if its ``>`` is not among them."""

Unglue = Callable[[str], "tuple[str, str] | None"]
"""Splits a swallowed parameter tag ``tool.key`` into its halves, or None (wire_format 5.7)."""


class Parameter(NamedTuple):
    """One parameter of an invoke: its key and the span of its value."""

    key: str
    start: int
    end: int


@dataclass(slots=True)
class Invoke:
    """One invoke of a body. ``end`` is None while it is open, ``name`` "" while its tag is.

    ``wrapped`` says that it stands in a block.
    """

    start: int
    wrapped: bool
    name: str = ""
    tag_end: int = 0
    end: int | None = None
    parameters: list[Parameter] = field(default_factory=list)


class Listener(Protocol):
    """Hears what the first reading finds, as it finds it."""

    def named(self, invoke: Invoke) -> None:
        """The tag of ``invoke`` is whole."""

    def parameter(self, key: str, end: int) -> None:
        """A parameter has opened; its tag reaches to ``end``."""

    def value(self, text: str, end: int) -> None:
        """More text of the open value, ending at ``end``."""

    def value_closed(self, start: int, end: int, behind: int) -> None:
        """The value spans ``start`` to ``end``; the next tag begins at ``behind``."""

    def closed(self, invoke: Invoke) -> None:
        """The invoke is closed."""


def tag_name(attributes: str) -> str | None:
    """The name in a tag's attributes; None if the tag is not well formed (wire_format 3, 5.7).

    One double-quoted name, not empty once a stray ``<|message|>`` is removed,
    and not self-closing. Two names are nobody's guess.
    """
    found = _NAME.findall(attributes)
    if len(found) != 1 or attributes.rstrip(wire.WHITESPACE).endswith("/"):
        return None
    name: str = found[0].replace(wire.MESSAGE, "")
    return name or None


class Reading:
    """One reading of a tool body.

    ``place`` is where it stands, ``invokes`` what it found (the last one may be
    open), ``prose`` whether there is text around the blocks, ``wrapped``
    whether a block is open, ``reach`` where the last closing tag outside a
    value ended. ``nested`` makes it the second reading of 5.5.
    """

    __slots__ = (
        "_depth",
        "_key",
        "_limit",
        "_listener",
        "_mark",
        "_pending",
        "_tag",
        "_unglue",
        "glued",
        "invokes",
        "nested",
        "place",
        "prose",
        "reach",
        "wrapped",
    )

    def __init__(self, limit: int, listener: Listener | None, unglue: Unglue | None) -> None:
        self.place = Place.LEAD
        self.invokes: list[Invoke] = []
        self.prose = False
        self.wrapped = False
        self.reach = 0
        self.nested = False
        self.glued = False
        self._limit = limit
        self._listener = listener
        self._unglue = unglue
        self._tag = ""
        self._key = ""
        self._mark = 0  # where the open value begins
        self._pending = ""  # a closer and the whitespace behind it, not yet decided
        self._depth = 0

    def fork(self) -> Reading:
        """The second reading, as it stands inside the value that this one is in."""
        other = Reading(self._limit, None, self._unglue)
        opened = self.invokes[-1]
        twin = replace(opened, parameters=opened.parameters[:])
        other.invokes = [*self.invokes[:-1], twin]
        other.place, other.prose, other.wrapped = self.place, self.prose, self.wrapped
        other.glued, other._key, other._mark = self.glued, self._key, self._mark
        other.nested = True
        return other

    @property
    def is_open(self) -> bool:
        """Whether an invoke is open."""
        return self.place in OPEN

    def mute(self) -> None:
        """Tell nobody from here on."""
        self._listener = None

    # -- text ---------------------------------------------------------------

    def text(self, text: str, start: int) -> None:
        """Read text that holds no tag. It may hold framing that turned out to be literal."""
        while text:
            place = self.place
            if place is Place.VALUE:
                self._say(text, start + len(text))
                return
            if place in IN_TAG:
                taken = self._tag_text(text, start)
                if taken == len(text):
                    return
                text, start = text[taken:], start + taken
            elif place is Place.CLOSER:
                text, start = self._behind_closer(text, start)
            else:
                self._outside(text)
                if self.place is place or self.place is not Place.VALUE:
                    return

    def noise(self, start: int) -> None:
        """Read a ``<|message|>``: noise inside a quoted name, text elsewhere (wire_format 5.7)."""
        if self.place in IN_TAG and _OPEN_NAME.search(self._tag):
            self._grow_tag(wire.MESSAGE)
        else:
            self.text(wire.MESSAGE, start)

    def interrupt(self) -> None:
        """A framing marker follows: a tag that is not whole meets its ``<`` (wire_format 3)."""
        if self.place in IN_TAG:
            self._not_a_tag()

    def _outside(self, text: str) -> None:
        if not text.strip(wire.WHITESPACE):
            return
        if self.place is Place.INVOKE and self._ungluing():
            return
        if self.place in PROSE:
            self.place = PROSE[self.place]
            self.prose = True
        else:
            self._fail()

    def _ungluing(self) -> bool:
        """Take the text behind a swallowed parameter tag for that parameter's value (5.7)."""
        invoke = self.invokes[-1]
        halves = self._unglue(invoke.name) if self._unglue and not invoke.parameters else None
        if halves is None:
            return False
        invoke.name, self._key = halves
        self._mark = invoke.tag_end
        self.glued = True
        self.place = Place.VALUE
        return True

    def _behind_closer(self, text: str, start: int) -> tuple[str, int]:
        """Whitespace behind a closer is held; anything else makes the closer text."""
        blanks = len(text) - len(text.lstrip(wire.WHITESPACE))
        if blanks == len(text) and len(self._pending) + blanks <= self._limit:
            self._pending += text
            return "", start
        self._release(start)
        return text, start

    def _release(self, end: int) -> None:
        self.place = Place.VALUE
        pending, self._pending = self._pending, ""
        self._say(pending, end)

    def _say(self, text: str, end: int) -> None:
        if self._listener is not None:
            self._listener.value(text, end)

    # -- tags ---------------------------------------------------------------

    def tag(self, literal: str, start: int) -> None:
        """Read one tag, or the name of an opening one, that begins at ``start``."""
        if self.place is Place.INNER_TAG:
            self.place = Place.VALUE  # it met another "<": no opener (wire_format 3)
        following = STRUCTURE[self.place].get(literal)
        if self.place is Place.CLOSER:
            if self.glued and literal == wire.PARAMETER_OPEN:
                following = None  # a swallowed tag stands before exactly one value (5.7)
            elif following is None:
                self._release(start)
            else:
                self._close_value(start)
        if self.place is Place.VALUE:
            self._in_value(literal, start)
        elif following is None:
            self._fail()
        else:
            self._move(literal, following, start)

    def _in_value(self, literal: str, start: int) -> None:
        if literal == wire.PARAMETER_CLOSE and self._depth == 0:
            self.place = Place.CLOSER
            self._pending = literal
            return
        if self.nested and literal == wire.PARAMETER_CLOSE:
            self._depth -= 1
        elif self.nested and literal == wire.PARAMETER_OPEN:
            self.place = Place.INNER_TAG
            self._tag = ""
        self._say(literal, start + len(literal))

    def _move(self, literal: str, following: Place, start: int) -> None:
        self.place = following
        if literal == wire.INVOKE_OPEN:
            self.invokes.append(Invoke(start, self.wrapped))
            self.glued = False
        elif literal == wire.INVOKE_CLOSE:
            self._close_invoke(start + len(literal))
        elif literal in (wire.BLOCK_OPEN, wire.BLOCK_CLOSE):
            self.wrapped = literal == wire.BLOCK_OPEN
            self.reach = start + len(literal)
        self._tag = ""

    def _close_value(self, behind: int) -> None:
        end = behind - len(self._pending)
        self._pending = ""
        self.invokes[-1].parameters.append(Parameter(self._key, self._mark, end))
        self.place = Place.INVOKE
        if self._listener is not None:
            self._listener.value_closed(self._mark, end, behind)

    def _close_invoke(self, end: int) -> None:
        invoke = self.invokes[-1]
        invoke.end = self.reach = end
        if self.wrapped:
            self.place = Place.BLOCK
        if self._listener is not None:
            self._listener.closed(invoke)

    # -- inside a tag -------------------------------------------------------

    def _tag_text(self, text: str, start: int) -> int:
        """Read on in a tag; how much of ``text`` belongs to it."""
        if ">" not in text and "<" not in text:
            self._grow_tag(text)
            return len(text)
        close, other = text.find(">"), text.find("<")
        if other >= 0 and not 0 <= close < other:
            self._not_a_tag()
            return 0
        self._grow_tag(text[:close])
        if self.place in IN_TAG:
            self._end_tag(start + close + 1)
        return close + 1

    def _grow_tag(self, text: str) -> None:
        self._tag += text
        if len(self._tag) >= _ROOM[self.place]:
            self._not_a_tag()

    def _not_a_tag(self) -> None:
        if self.place is Place.INNER_TAG:
            self.place = Place.VALUE
        else:
            self._fail()

    def _end_tag(self, end: int) -> None:
        name = tag_name(self._tag)
        if self.place is Place.INNER_TAG:
            self.place = Place.VALUE
            self._depth += name is not None
        elif name is None:
            self._fail()
        elif self.place is Place.INVOKE_TAG:
            self._name_invoke(name, end)
        else:
            self._open_value(name, end)

    def _name_invoke(self, name: str, end: int) -> None:
        invoke = self.invokes[-1]
        invoke.name, invoke.tag_end = name, end
        self.place = Place.INVOKE
        if self._listener is not None:
            self._listener.named(invoke)

    def _open_value(self, key: str, end: int) -> None:
        self._key, self._mark, self._depth = key, end, 0
        self.place = Place.VALUE
        if self._listener is not None:
            self._listener.parameter(key, end)

    def _fail(self) -> None:
        self.place = Place.FAILED
        self._listener = None
