"""Events of a response as chunks of a chat completion.

Rules: text and reasoning go on as they come, a call when its item is completed,
because a chunk can't be taken back. All chunks have one id; the first has the
role, the last of the choice has the reason. ``data: [DONE]`` is the server's.
Source: responses.md 1.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from ..outcome import ENDS, TEXT_DELTA, THOUGHT_DELTAS, failure, runnable
from .forms import (
    BETWEEN_TEXTS,
    BETWEEN_THOUGHTS,
    REASONING,
    finish_reason,
    head,
    token_logprobs,
    tool_call,
    usage,
)

Chunk: TypeAlias = dict[str, Any]
Fields: TypeAlias = Mapping[str, Any]

INPUT: Final = {"function": "arguments", "custom": "input"}
"""Type of a call -> the key of the text that it is called with."""


class ChatStream:
    """The chunks of one answer.

    ``model`` is another name to answer with, ``include_usage`` asks for the
    chunk of usage at the end, ``reasoning`` are the keys that the reasoning
    stands under.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        include_usage: bool = False,
        reasoning: Sequence[str] = REASONING,
    ) -> None:
        self._model = model
        self._include_usage = include_usage
        self._reasoning = tuple(reasoning)
        self._head: dict[str, Any] = {}
        self._started = False
        self._calls = 0
        self._last_text: str | None = None
        self._last_thought: str | None = None

    def feed(self, event: Fields) -> list[Chunk]:
        """The chunks that one event of the response brings, in order.

        A repeated ``response.in_progress``, and a keepalive, is a chunk that
        says nothing. A failure is an object with an ``error``, and no chunk.
        """
        handler = self._handlers.get(event["type"])
        return [] if handler is None else handler(self, event)

    def _created(self, event: Fields) -> list[Chunk]:
        self._head = head(event["response"], "chat.completion.chunk", self._model)
        return []

    def _in_progress(self, event: Fields) -> list[Chunk]:
        if self._started:
            return [self._chunk({})]
        self._started = True
        return [self._chunk({"role": "assistant", "content": "", "refusal": None})]

    def _keepalive(self, event: Fields) -> list[Chunk]:
        return [self._chunk({})] if self._started else []

    def _text(self, event: Fields) -> list[Chunk]:
        item, before = event["item_id"], self._last_text
        self._last_text = item
        text = event["delta"] if before in (None, item) else BETWEEN_TEXTS + event["delta"]
        return [self._chunk({"content": text}, logprobs=token_logprobs(event["logprobs"]))]

    def _thought(self, event: Fields) -> list[Chunk]:
        item, before = event["item_id"], self._last_thought
        self._last_thought = item
        text = event["delta"] if before in (None, item) else BETWEEN_THOUGHTS + event["delta"]
        return [self._chunk(dict.fromkeys(self._reasoning, text))]

    def _item_done(self, event: Fields) -> list[Chunk]:
        if not runnable(event["item"]):
            return []
        call = tool_call(event["item"])
        kind, index = call["type"], self._calls
        self._calls += 1
        key = INPUT[kind]
        opening = {"index": index, **call, kind: {**call[kind], key: ""}}
        rest = {"index": index, kind: {key: call[kind][key]}}
        return [self._chunk({"tool_calls": [part]}) for part in (opening, rest)]

    def _end(self, event: Fields) -> list[Chunk]:
        response = event["response"]
        error = failure(response)
        if error is not None:
            return [error.body()]
        chunks = [self._chunk({}, finish=finish_reason(response))]
        if self._include_usage:
            chunks.append({**self._head, "choices": [], "usage": usage(response["usage"])})
        return chunks

    def _chunk(
        self, delta: Chunk, *, logprobs: Chunk | None = None, finish: str | None = None
    ) -> Chunk:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        chunk = {**self._head, "choices": [choice]}
        return {**chunk, "usage": None} if self._include_usage else chunk

    _handlers: ClassVar[dict[str, Callable[[ChatStream, Fields], list[Chunk]]]] = {
        "response.created": _created,
        "response.in_progress": _in_progress,
        "keepalive": _keepalive,
        TEXT_DELTA: _text,
        **dict.fromkeys(THOUGHT_DELTAS, _thought),
        "response.output_item.done": _item_done,
        **dict.fromkeys(ENDS, _end),
    }
    """Type of an event -> what reads it; the others repeat what these say."""
