"""What a session tells beside the parser's own events.

Rules: few and small. The parser's events are passed on as they come; these say
what a parser can't know: which turn it is, what became of a call, why it is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..parser.events import Event

if TYPE_CHECKING:
    from ..messages import RejectedCall, ToolCall

Outcome: TypeAlias = Literal["done", "failed", "denied", "cut"]
"""Of a call: it ran; it ran and raised; it was not allowed; its turn was cut, so it didn't run."""

EndReason: TypeAlias = Literal["done", "empty", "repeated", "turns", "cut", "context"]


@dataclass(frozen=True, slots=True)
class TurnStart:
    """The model is asked; its turn follows, up to its ``TurnEnd``. ``number`` counts from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class ToolStart:
    """``call`` is allowed and runs as soon as the next event is asked for."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """``call`` is answered with ``text``. Without a ``ToolStart`` before it, it did not run."""

    call: ToolCall
    text: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Feedback:
    """A rejected call is answered with ``text``; it did not run."""

    rejected: RejectedCall
    text: str


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """Nothing more comes, because of ``reason``; ``text`` is a sentence for a person.

    "done": the model answered. "empty": it ended without answer or call.
    "repeated": the same call failed too often. Limits: "turns", "cut" (a turn
    was longer than allowed), "context" (the conversation is).
    """

    reason: EndReason
    text: str


SessionEvent: TypeAlias = Event | TurnStart | ToolStart | ToolEnd | Feedback | TaskEnd
