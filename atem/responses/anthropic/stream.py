"""Events of a response as events of a message.

Rules: a block for each item, in the model's order. Text and reasoning go on as
they come, a call when its item is completed, because a block can't be taken
back. Source: responses.md 1.12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ..outcome import ENDS, TEXT_DELTA, THOUGHT_DELTAS, failure, runnable
from .faults import error_body
from .forms import ending, envelope, said, thinking, tool_use, usage

if TYPE_CHECKING:
    from .request import Display

Event: TypeAlias = dict[str, Any]
Fields: TypeAlias = Mapping[str, Any]

PING: Final = {"type": "ping"}


class MessagesStream:
    """The events of one message.

    ``model`` is another name to answer with, ``display`` what the client sees of
    the reasoning, ``input_tokens`` the length of the prompt if it is known
    before the answer. Whoever knows which string ended the text puts it into
    ``stop_sequence`` before the last event.
    """

    def __init__(
        self, model: str | None = None, *, display: Display = "shown", input_tokens: int = 0
    ) -> None:
        self.stop_sequence: str | None = None
        self._model = model
        self._display = display
        self._input_tokens = input_tokens
        self._started = False
        self._index = 0

    def feed(self, event: Fields) -> list[Event]:
        """The events that one event of the response brings, in order.

        Every ``response.in_progress`` and keepalive is a ping. A failure is an
        ``error`` event, and the last one.
        """
        handler = self._handlers.get(event["type"])
        return [] if handler is None else handler(self, event)

    def _created(self, event: Fields) -> list[Event]:
        self._started = True
        begun = envelope(event["response"], self._model)
        begun["usage"]["input_tokens"] = self._input_tokens
        return [{"type": "message_start", "message": begun}]

    def _ping(self, event: Fields) -> list[Event]:
        return [dict(PING)] if self._started else []

    def _item_added(self, event: Fields) -> list[Event]:
        kind = event["item"]["type"]
        if kind == "message":
            return [self._start(said(""))]
        if kind == "reasoning" and self._display != "hidden":
            return [self._start(thinking("", None, self._display))]
        return []

    def _text(self, event: Fields) -> list[Event]:
        return [self._delta("text_delta", text=event["delta"])]

    def _thought(self, event: Fields) -> list[Event]:
        if self._display != "shown":
            return []
        return [self._delta("thinking_delta", thinking=event["delta"])]

    def _item_done(self, event: Fields) -> list[Event]:
        item = event["item"]
        if item["type"] == "message":
            return [self._stop()]
        if item["type"] == "reasoning":
            return self._thought_done(item)
        return self._call(item) if runnable(item) else []

    def _thought_done(self, item: Fields) -> list[Event]:
        if self._display == "hidden":
            return []
        blob = item.get("encrypted_content")
        signed = [self._delta("signature_delta", signature=blob)] if blob else []
        return [*signed, self._stop()]

    def _call(self, item: Fields) -> list[Event]:
        block, given = tool_use(item)
        return [
            self._start(block),
            self._delta("input_json_delta", partial_json=given),
            self._stop(),
        ]

    def _end(self, event: Fields) -> list[Event]:
        response = event["response"]
        error = failure(response)
        if error is not None:
            return [error_body(error)]
        delta = ending(response, self.stop_sequence)
        last = {"type": "message_delta", "delta": delta, "usage": usage(response["usage"])}
        return [last, {"type": "message_stop"}]

    def _start(self, block: Event) -> Event:
        return {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, kind: str, **fields: Any) -> Event:
        delta = {"type": kind, **fields}
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _stop(self) -> Event:
        index = self._index
        self._index += 1
        return {"type": "content_block_stop", "index": index}

    _handlers: ClassVar[dict[str, Callable[[MessagesStream, Fields], list[Event]]]] = {
        "response.created": _created,
        "response.in_progress": _ping,
        "keepalive": _ping,
        "response.output_item.added": _item_added,
        TEXT_DELTA: _text,
        **dict.fromkeys(THOUGHT_DELTAS, _thought),
        "response.output_item.done": _item_done,
        **dict.fromkeys(ENDS, _end),
    }
    """Type of an event -> what reads it; the others repeat what these say."""
