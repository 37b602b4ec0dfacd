"""Events folded to the turn that they tell.

Rules: folding adds nothing: whatever a :class:`Turn` says stood in an event.
Any events fold, also those that are left of a turn after a filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..messages import Message, RejectedCall, ToolCall
from .events import (
    CallEnd,
    CallRejected,
    ContentDelta,
    Event,
    FinishReason,
    MessageEnd,
    MessageStart,
    Problem,
    ReasoningDelta,
    TurnEnd,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model.

    ``reasoning`` are all ``to=self`` bodies joined by newlines, ``content``
    all answers as written, ``calls`` what may run, ``rejected`` what must not.
    ``messages`` are the messages in the model's order; one to a tool holds its
    calls and rejections in order. ``complete`` is False if the stream was cut,
    or ended in the middle of framing or of a call; ``finish_reason`` is then
    "length", else "tool_calls" if there are calls, else "stop".
    """

    reasoning: str = ""
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    rejected: tuple[RejectedCall, ...] = ()
    messages: tuple[Message, ...] = ()
    complete: bool = True
    finish_reason: FinishReason = "stop"
    problems: tuple[Problem, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is neither an answer nor any call: reasoning or nothing, then the end."""
        return not (self.content or self.calls or self.rejected)

    def to_chat_message(self) -> dict[str, Any]:
        """The turn as an assistant message of the Chat Completions API."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [_chat_call(call) for call in self.calls]
        return message

    def to_response_items(self) -> list[dict[str, Any]]:
        """The turn as output items of the Responses API, in the model's order.

        Rejected calls are left out: a client runs any ``function_call`` item.
        Items other than calls get fresh ids. An answer that the stream cut is
        "incomplete".
        """
        items: list[dict[str, Any]] = []
        for message in self.messages:
            items.extend(_response_items(message))
        if items and not self.complete and items[-1]["type"] == "message":
            items[-1]["status"] = "incomplete"
        return items


def _chat_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.wire_name, "arguments": call.arguments_json}
    return {"id": call.id, "type": "function", "function": function}


def _response_items(message: Message) -> list[dict[str, Any]]:
    items = [_response_call(call) for call in message.calls if isinstance(call, ToolCall)]
    if not message.content:
        return items
    if message.recipient == wire.SELF:
        part = {"type": "reasoning_text", "text": message.content}
        thought = {"type": "reasoning", "id": _item_id("rs"), "summary": [], "content": [part]}
        return [thought, *items]
    text: dict[str, Any] = {"type": "output_text", "text": message.content, "annotations": []}
    answer = {
        "type": "message",
        "id": _item_id("msg"),
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    return [answer, *items]


def _item_id(prefix: str) -> str:
    return f"{prefix}_{token_hex(12)}"


def _response_call(call: ToolCall) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments_json,
        "status": "completed",
    }
    if call.namespace:
        item["namespace"] = call.namespace
    return item


@dataclass(slots=True)
class _Draft:
    """A message in the making. ``implied``: no ``MessageStart`` opened it."""

    recipient: str | None
    implied: bool = False
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall | RejectedCall] = field(default_factory=list)

    def message(self) -> Message:
        return Message(
            "assistant", "".join(self.text), recipient=self.recipient, calls=tuple(self.calls)
        )


class _Fold:
    """Collects the parts of a turn, one event at a time."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.content: list[str] = []
        self.calls: list[ToolCall] = []
        self.rejected: list[RejectedCall] = []
        self.drafts: list[_Draft] = []
        self.open: _Draft | None = None
        self.problems: list[Problem] = []
        self.end: TurnEnd | None = None

    def draft(self, implied: str | None = None) -> _Draft:
        """The open message; an event outside of one opens one, to ``implied``."""
        found = self.open
        if found is None or (found.implied and found.recipient != implied):
            found = self._opened(_Draft(implied, implied=True))
        return found

    def _opened(self, draft: _Draft) -> _Draft:
        self.drafts.append(draft)
        self.open = draft
        return draft

    def message_start(self, event: MessageStart) -> None:
        self._opened(_Draft(event.recipient))

    def message_end(self, _: MessageEnd) -> None:
        self.open = None

    def reasoning_delta(self, event: ReasoningDelta) -> None:
        self.reasoning.append(event.text)
        if event.start != event.end:  # the newline between two bodies is in neither
            self.draft(wire.SELF).text.append(event.text)

    def content_delta(self, event: ContentDelta) -> None:
        self.content.append(event.text)
        self.draft().text.append(event.text)

    def call_end(self, event: CallEnd) -> None:
        self.calls.append(event.call)
        self.draft().calls.append(event.call)

    def call_rejected(self, event: CallRejected) -> None:
        if event.rejected is not None:
            self.rejected.append(event.rejected)
            self.draft().calls.append(event.rejected)

    def problem(self, event: Problem) -> None:
        self.problems.append(event)

    def turn_end(self, event: TurnEnd) -> None:
        self.end = event

    def turn(self) -> Turn:
        end = self.end
        return Turn(
            reasoning="".join(self.reasoning),
            content="".join(self.content),
            calls=tuple(self.calls),
            rejected=tuple(self.rejected),
            messages=tuple(draft.message() for draft in self.drafts),
            complete=end is not None and end.complete,
            finish_reason="length" if end is None else end.finish_reason,
            problems=tuple(self.problems),
        )


_HANDLERS: Final = {
    MessageStart: _Fold.message_start,
    MessageEnd: _Fold.message_end,
    ReasoningDelta: _Fold.reasoning_delta,
    ContentDelta: _Fold.content_delta,
    CallEnd: _Fold.call_end,
    CallRejected: _Fold.call_rejected,
    Problem: _Fold.problem,
    TurnEnd: _Fold.turn_end,
}


class Collector:
    """:func:`collect`, one event at a time; keeps their texts and not the events."""

    def __init__(self) -> None:
        self._fold = _Fold()

    def add(self, event: Event) -> None:
        """The next event."""
        handler: Any = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self._fold, event)

    def turn(self) -> Turn:
        """The turn as far as it has come."""
        return self._fold.turn()


def collect(events: Iterable[Event]) -> Turn:
    """Fold the events of one turn. Without its ``TurnEnd`` the turn counts as cut.

    Some may have been filtered out: outside a message, reasoning opens one to
    ``self`` and any other event one without recipient.
    """
    collector = Collector()
    for event in events:
        collector.add(event)
    return collector.turn()
