"""A finished turn as output items.

Rules: the builder makes them, so that there is one way from a turn to items.
Source: responses.md 1.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import wire
from ..messages import RejectedCall, TextPart
from ..parser.events import (
    CallEnd,
    CallRejected,
    ContentDelta,
    MessageEnd,
    MessageStart,
    ReasoningDelta,
)
from . import ids
from .builder import ResponseBuilder
from .tools import ClientTools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..messages import Content
    from ..parser.events import Event
    from ..parser.fold import Turn
    from .blob import Blobs
    from .builder import OnRejected
    from .ids import NewId


def to_items(
    turn: Turn,
    tools: ClientTools | None = None,
    *,
    new_id: NewId = ids.new_id,
    summary: bool = False,
    encrypted: Blobs | None = None,
    on_rejected: OnRejected = "message",
) -> list[dict[str, Any]]:
    """The items of ``turn``, in the model's order; the options are the builder's.

    Without ``tools`` every call is a function's, under the names that it has.
    """
    builder = ResponseBuilder(
        {},
        ClientTools() if tools is None else tools,
        created_at=0,
        new_id=new_id,
        summary=summary,
        encrypted=encrypted,
        on_rejected=on_rejected,
        id=ids.RESPONSE,  # of a response that nobody sees
    )
    for event in _events(turn):
        builder.feed(event)
    builder.finish(0, reason=None if turn.complete else "max_output_tokens")
    items: list[dict[str, Any]] = builder.response["output"]
    return items


def _events(turn: Turn) -> Iterator[Event]:
    """The turn as the parser would tell it, each message in one piece."""
    for place, message in enumerate(turn.messages):
        yield MessageStart(message.recipient)
        text = _text(message.content)
        if text and message.recipient == wire.SELF:
            yield ReasoningDelta(text, 0, len(text))
        elif text:
            yield ContentDelta(text, 0, len(text))
        yield from map(_call, message.calls)
        cut = place == len(turn.messages) - 1 and not turn.complete
        yield MessageEnd(None if cut else wire.EOM, None)


def _call(call: Any) -> Event:
    if isinstance(call, RejectedCall):
        return CallRejected(None, call)
    return CallEnd(call.index, call)


def _text(content: Content) -> str:
    if isinstance(content, str):
        return content
    parts = (TextPart(part) if isinstance(part, str) else part for part in content)
    return "".join(part.text for part in parts if isinstance(part, TextPart))
