"""A response in the making: parser events in, the events of the Responses API out.

Rules: the only state there is of a response. The response object is made of the
items that were streamed, so a stream and an answer in one piece can't differ.
One item is open at a time, opened by its first character. A call becomes an item
when its ``CallEnd`` comes, and only a call that may be passed on.
Source: responses.md 1.5, 1.7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .. import wire
from ..errors import OptionError
from ..parser.events import (
    ArgumentsDelta,
    CallEnd,
    CallRejected,
    CallStart,
    ContentDelta,
    Event,
    MessageEnd,
    MessageStart,
    Problem,
    ReasoningDelta,
)
from . import ids
from .envelope import Status, envelope
from .output.open_text import SUMMARY, THOUGHTS, EventNames, OpenMessage, OpenReasoning, OpenText
from .output.outbox import Outbox
from .output.rejection import Rejection
from .output.usage import Usage

if TYPE_CHECKING:
    from .blob import Blobs
    from .choice import Choice
    from .ids import NewId
    from .output.open_item import OpenItem
    from .tools import ClientTools

OnRejected: TypeAlias = Literal["message", "drop"]
Arguments: TypeAlias = Literal["whole", "stream"]


class ResponseBuilder:
    """One response.

    ``echo``: the keys of the response object that repeat the request. ``tools``:
    the request's tools; ``choice``: which of them may be called (all).
    ``created_at``: seconds since 1970. ``summary`` tells reasoning as a summary.
    ``encrypted`` seals it into ``encrypted_content``. ``on_rejected``: what
    becomes of a call that is not passed on: a message that says so, or nothing;
    ``rejections`` holds them either way. ``arguments="stream"`` shows calls
    while they are written (the parser needs the same option).
    """

    def __init__(
        self,
        echo: Mapping[str, Any],
        tools: ClientTools,
        *,
        created_at: int,
        new_id: NewId = ids.new_id,
        summary: bool = False,
        encrypted: Blobs | None = None,
        on_rejected: OnRejected = "message",
        choice: Choice | None = None,
        arguments: Arguments = "whole",
        event_names: EventNames = "openai",
        id: str | None = None,  # noqa: A002 - the API's name for it
    ) -> None:
        raise NotImplementedError

    @property
    def response(self) -> dict[str, Any]:
        """The response object as it is now."""
        raise NotImplementedError

    @property
    def sequence(self) -> int:
        """The number of the next event."""
        raise NotImplementedError

    def start(self, *, queued: bool = False) -> list[dict[str, Any]]:
        """The first events: ``response.created`` and ``response.in_progress``.

        With ``queued``: ``created`` and ``queued``; a second ``start()`` then
        gives ``in_progress``. What was told is not told again.
        """
        raise NotImplementedError

    def feed(self, event: Event, logprobs: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
        """The events that one event of the parser brings."""
        raise NotImplementedError

    def finish(self, completed_at: int, *, reason: str | None = None) -> list[dict[str, Any]]:
        """The end: ``response.completed``, or ``response.incomplete`` because of ``reason``."""
        raise NotImplementedError

    def fail(self, code: str, message: str) -> list[dict[str, Any]]:
        """The end: ``response.failed``."""
        raise NotImplementedError

    def cancel(self) -> list[dict[str, Any]]:
        """The end of a response that was cancelled: ``response.incomplete``, status "cancelled"."""
        raise NotImplementedError
