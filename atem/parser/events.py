"""What a parser emits: small immutable values, the only vocabulary from the wire upwards.

Rules: no behaviour here. Every event carries ``start`` and ``end``, in
characters of the decoded stream; each start is the end of the event before,
so that the events of a turn cover the input exactly once. An event that
restates text already accounted for has an empty span.

Named tuples, because the hot path builds one for each token: measured on
Python 3.11, half the time of a frozen slotted dataclass. Two events are equal
only if they are of one class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from ..messages import RejectedCall, ToolCall

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length"]

_Event = TypeVar("_Event", bound=type)


def _equal(self: tuple[Any, ...], other: object) -> bool:
    return self.__class__ is other.__class__ and tuple.__eq__(self, other)


def _differ(self: tuple[Any, ...], other: object) -> bool:
    return not _equal(self, other)


def _event(cls: _Event) -> _Event:
    """Let equality depend on the class: as bare tuples, reasoning "a" equals content "a"."""
    cls.__eq__ = _equal  # type: ignore[assignment, method-assign]
    cls.__ne__ = _differ  # type: ignore[assignment, method-assign]
    return cls


@_event
class MessageStart(NamedTuple):
    """A message opens. ``recipient`` as written; None for none, or for text without a header."""

    recipient: str | None
    start: int = 0
    end: int = 0


@_event
class ReasoningDelta(NamedTuple):
    r"""The next piece of ``to=self`` text, verbatim.

    An empty span marks the "\\n" that joins two bodies (wire_format 3.3).
    """

    text: str
    start: int = 0
    end: int = 0


@_event
class ContentDelta(NamedTuple):
    """The next piece of the answer, verbatim."""

    text: str
    start: int = 0
    end: int = 0


@_event
class CallStart(NamedTuple):
    """A call to a declared tool has begun. Provisional: nothing may run before its ``CallEnd``."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of an event
    id: str
    name: str
    namespace: str | None
    raw_name: str
    recipient: str | None
    start: int = 0
    end: int = 0


@_event
class ArgumentsDelta(NamedTuple):
    """The next piece of the JSON text of a call's arguments. Provisional."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of an event
    json: str
    start: int = 0
    end: int = 0


@_event
class CallEnd(NamedTuple):
    """The call is decided. This event is the only licence to run it."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of an event
    call: ToolCall
    start: int = 0
    end: int = 0


@_event
class CallRejected(NamedTuple):
    """A call must not run.

    ``index`` names the announced call that is taken back, or is None if none
    was. ``rejected`` is the verdict; None takes the call back without one
    (another reading of the same text follows under a fresh index).
    """

    index: int | None  # type: ignore[assignment]
    rejected: RejectedCall | None
    start: int = 0
    end: int = 0


@_event
class MessageEnd(NamedTuple):
    """The message is over.

    ``terminator`` is the marker that ended it, None if a header or the end of
    the stream did. ``tokens`` counts the tokens that begin in its body, None
    if the stream was plain text.
    """

    terminator: str | None
    tokens: int | None
    start: int = 0
    end: int = 0


@_event
class Problem(NamedTuple):
    """Something a user may want to know of, by ``code``; parsing goes on.

    Codes: "undecided", "bad_header", "missing_terminator", "text_after_turn",
    "undeclared_channel", "duplicate_parameter", "recipient_mismatch",
    "ambiguous_value", "call_too_long", "untrusted".
    """

    code: str
    message: str
    start: int = 0
    end: int = 0


@_event
class TurnEnd(NamedTuple):
    """The end of the stream; always the last event (docs/parser.md, "Four ways in")."""

    finish_reason: FinishReason
    complete: bool
    start: int = 0
    end: int = 0


Event: TypeAlias = (
    MessageStart
    | ReasoningDelta
    | ContentDelta
    | CallStart
    | ArgumentsDelta
    | CallEnd
    | CallRejected
    | MessageEnd
    | Problem
    | TurnEnd
)
