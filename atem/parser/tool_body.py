"""One tool body: its text, its two readings, and where it may end (wire_format 5.4, 5.5).

Rules: this module knows ends, not verdicts: it says at which candidate a body
is over. What its invokes are worth then is :mod:`verdict`'s. All positions are
those of the stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from .. import wire
from .calls import Invoke, Reading
from .lexer import TAGS
from .provisional import Provisional
from .rope import Rope
from .states import FLAT, IN_TAG, STRUCTURE, Place

if TYPE_CHECKING:
    import re

    from .context import Context
    from .handover import Handover


_QUOTABLE: Final = frozenset(TAGS) - {wire.PARAMETER_CLOSE}
"""Tags that mean nothing inside a value to the first reading (wire_format 5.5)."""


class View(NamedTuple):
    """What a reading holds at one point.

    It refers to the reading's own list, which only grows: ``begun`` invokes of
    it there were, and the last had ``parameters`` if it was open (else None). A
    copy for each candidate would be quadratic.
    """

    place: Place
    found: list[Invoke]
    begun: int
    parameters: int | None
    prose: bool
    wrapped: bool
    reach: int

    @classmethod
    def of(cls, reading: Reading) -> View:
        """``reading`` as it stands."""
        found = reading.invokes
        parameters = len(found[-1].parameters) if reading.is_open else None
        return cls(
            reading.place,
            found,
            len(found),
            parameters,
            reading.prose,
            reading.wrapped,
            reading.reach,
        )

    @property
    def is_open(self) -> bool:
        """Whether an invoke was open."""
        return self.parameters is not None

    @property
    def invokes(self) -> list[Invoke]:
        """The invokes as they were then."""
        invokes = self.found[: self.begun]
        if self.is_open:
            last = invokes[-1]
            invokes[-1] = replace(last, end=None, parameters=last.parameters[: self.parameters])
        return invokes


class Candidate(NamedTuple):
    """A place where a tool body may end (wire_format 5.4).

    ``end`` is where the body would end, ``terminator`` the marker that stands
    there, None before a header or the end of the stream.
    """

    end: int
    terminator: str | None
    first: View
    second: View
    balanced: bool

    @property
    def resume(self) -> int:
        """Where reading would go on."""
        return self.end + len(self.terminator or "")

    @property
    def chosen(self) -> View | None:
        """The reading that reads up to here: the first unless it fails, else the second.

        One that has closed all its invokes fails also if there is prose around
        them and the body is not balanced (wire_format 5.5).
        """
        for view in (self.first, self.second):
            tolerable = view.is_open or self.balanced or not view.prose
            if view.place is not Place.FAILED and tolerable:
                return view
        return None

    @property
    def whole(self) -> bool:
        """Whether the body reads completely up to here and is balanced."""
        chosen = self.chosen
        return chosen is not None and not chosen.is_open and self.balanced

    @property
    def doubtful(self) -> bool:
        """Whether the body reads up to here, but is not whole: it may go on behind."""
        return self.chosen is not None and not self.whole


class ToolBody:
    """The body of a tool message as far as it was read.

    ``recovered`` marks a message that the recovery of wire_format 5.3 opened,
    ``headerless`` a block in a body without recipient (5.6). ``undecided`` is
    the first candidate once that one was not accepted; ``too_long`` is set
    past ``max_call_chars``.
    """

    __slots__ = (
        "_context",
        "_counts",
        "_first",
        "headerless",
        "limit",
        "note",
        "provisional",
        "recipient",
        "recovered",
        "refused",
        "rope",
        "second",
        "start",
        "too_long",
        "undecided",
    )  # fmt: skip

    def __init__(
        self,
        context: Context,
        start: int,
        recipient: str | None,
        *,
        recovered: bool = False,
        headerless: bool = False,
        note: Handover | None = None,
    ) -> None:
        options = context.options
        self._context = context
        self.start = start
        self.recipient = recipient
        self.recovered = recovered or (note is not None and note.recovered)
        self.note = note
        self.refused = 0  # candidates behind which the body went on
        self.headerless = headerless
        self.limit = start + options.max_call_chars
        self.rope = Rope(start)
        self.undecided: Candidate | None = None
        self.too_long = False
        self.provisional = Provisional(context, self.rope, recipient)
        streams = options.arguments == "stream" and context.trusted and not headerless
        unglue = self._unglue if "glued" in options.recover else None
        self._first = Reading(options.max_header, self.provisional if streams else None, unglue)
        self.second: Reading | None = None
        self._counts = dict.fromkeys(TAGS, 0)

    @property
    def place(self) -> Place:
        """Where the first reading stands."""
        return self._first.place

    @property
    def is_flat(self) -> bool:
        """Whether text without a marker changes nothing but the end of a value."""
        return self._first.place in FLAT and not self.too_long

    @property
    def streaming(self) -> int | None:
        """The index of the call whose value such text is passed on for, or None."""
        return self.provisional.index if self._first.place is Place.VALUE else None

    def quotes(self, literal: str) -> bool:
        """Whether a tag is text to the first reading while the body :attr:`is_flat`."""
        return literal in _QUOTABLE and self._first.place is not Place.TRAIL

    def quote(self, text: str, start: int, tag: re.Match[str]) -> None:
        """Read text with one tag in it, which is quoted, while the body :attr:`is_flat`."""
        literal, at, behind = tag.group(), tag.start(), tag.end()
        self._counts[literal] += 1
        opens = literal == wire.PARAMETER_OPEN
        if self.second is None and opens and self._value_is_open:
            self.second = self._first.fork()
        second = self.second
        # Inside a value only the opener of a parameter means something to the second reading.
        if second is not None and (opens or second.place is not Place.VALUE):
            second.text(text[:at], start)
            second.tag(literal, start + at)
            second.text(text[behind:], start + behind)

    @property
    def _value_is_open(self) -> bool:
        return self._first.place is Place.VALUE

    def begin(self, text: str, at: int, *, plain: bool, before: str = "") -> None:
        """Keep the text of which the body is the end: ``text`` begins at position ``at``.

        ``before`` is what of the body stands before it.
        """
        self.rope.switch(plain)
        if before:
            self.rope.append(before, plain)
        self.rope.adopt(text, at)

    def append(self, text: str, *, plain: bool) -> None:
        """Keep text that was fed, as far as the bound allows."""
        if not self.too_long:
            self.rope.append(text, plain)

    def text(self, text: str, start: int) -> None:
        """Read text that holds no tag."""
        self._first.text(text, start)
        if self.second is not None:
            self.second.text(text, start)

    def tag(self, literal: str, start: int) -> None:
        """Read a tag, or the name of an opening one; fork where the readings part."""
        self._counts[literal] += 1
        first = self._first
        if literal == wire.PARAMETER_OPEN and self._value_is_open and self.second is None:
            self.second = first.fork()
        first.tag(literal, start)
        if self.second is not None:
            self.second.tag(literal, start)

    def noise(self, start: int) -> None:
        """Read a ``<|message|>``, which means nothing in a body."""
        self._first.noise(start)
        if self.second is not None:
            self.second.noise(start)

    def interrupt(self) -> None:
        """A framing marker follows, whatever it means: no tag goes on behind it."""
        self._first.interrupt()
        if self.second is not None:
            self.second.interrupt()

    def may_become_tag(self, tail: str) -> bool:
        """Whether the end of the stream behind ``tail`` cut a tag that might stand here."""
        failed = self._first.place is Place.FAILED and self.second is not None
        reading = self.second if failed and self.second is not None else self._first
        if reading.place in IN_TAG:
            return wire.MESSAGE.startswith(tail)  # noise in a name (wire_format 5.7)
        return any(tag.startswith(tail) for tag in STRUCTURE[reading.place])

    def candidate(self, end: int, terminator: str | None) -> Candidate:
        """The body as it stands, if it ended at ``end``."""
        first = View.of(self._first)
        second = first if self.second is None else View.of(self.second)
        return Candidate(end, terminator, first, second, self._balanced)

    def accepts(self, candidate: Candidate) -> bool:
        """Whether the body ends here. Remembers the first candidate that is refused.

        A body that neither reading can read ends at once: nothing that follows
        could make it whole. So does one that may not be read again.
        """
        if self.note is not None:
            self.refused += 1
            return self.refused > self.note.refused
        if candidate.whole or self.headerless or self.too_long:
            return True
        if not self._context.may_read_again:
            return True
        if self.undecided is None:
            if not candidate.doubtful:
                return True
            self.undecided = candidate
            self.mute()
        self.refused += 1
        return False

    def misquotes(self, view: View, *, in_tag: bool) -> bool:
        """Whether a recovered message was none: something follows its last block (5.3)."""
        follows = view.place is Place.TRAIL or (view.place is Place.AFTER and in_tag)
        return self.recovered and follows and view.begun > 0

    def mute(self) -> None:
        """Emit no more provisional events."""
        self._first.mute()
        self.provisional.index = None

    @property
    def _balanced(self) -> bool:
        counts = self._counts
        return (
            counts[wire.INVOKE_OPEN] <= counts[wire.INVOKE_CLOSE]
            and counts[wire.PARAMETER_OPEN] <= counts[wire.PARAMETER_CLOSE]
        )

    def _unglue(self, name: str) -> tuple[str, str] | None:
        """``tool.key`` as tool and key, if that is what it can only be (wire_format 5.7)."""
        head, dot, key = name.rpartition(".")
        if not dot or self._context.resolve(name) is not None:
            return None
        tool = self._context.resolve(head)
        if tool is None or key not in (tool.parameters or {}).get("properties", {}):
            return None
        return head, key
