"""A response in the making: parser events in, the events of the Responses API out.

Rules: the only state there is of a response. The response object is made of the
items that were streamed, so a stream and an answer in one piece can't differ.
One item is open at a time, opened by its first character. A call becomes an item
when its ``CallEnd`` comes, and only a call that may be passed on.
Source: responses.md 1.5, 1.7.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .. import wire
from ..messages import ToolCall
from ..parser.events import (
    ArgumentsDelta,
    CallEnd,
    CallRejected,
    CallStart,
    ContentDelta,
    MessageEnd,
    MessageStart,
    Problem,
    ReasoningDelta,
)
from . import ids
from .envelope import envelope
from .output.live_call import LiveCall
from .output.objections import objection
from .output.open_call import OpenCustom, OpenFunction, call_item
from .output.open_item import OpenItem
from .output.open_text import SUMMARY, THOUGHTS, OpenMessage, OpenReasoning
from .output.outbox import Outbox
from .output.rejection import Rejection
from .output.search import search_call, search_output
from .output.usage import Usage
from .running.failures import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..parser.events import Event
    from .blob import Blobs
    from .choice import Choice
    from .envelope import Status
    from .ids import NewId
    from .output.open_call import OpenCall
    from .output.open_item import ItemStatus
    from .output.open_text import EventNames
    from .tools import ClientTools, Declared

OnRejected: TypeAlias = Literal["message", "drop"]
Arguments: TypeAlias = Literal["whole", "stream"]
Phase: TypeAlias = Literal["commentary", "final_answer"]

OVER: Final = ("completed", "incomplete", "failed", "cancelled")

CHUNK: Final = 8192
"""Characters of one delta of a call that is shown at once."""


class ResponseBuilder:
    """One response.

    ``echo``: the keys of the response object that repeat the request. ``tools``:
    the request's tools; ``choice``: which of them may be called (all).
    ``created_at``: seconds since 1970. ``summary`` tells reasoning as a summary.
    ``encrypted`` seals it into ``encrypted_content``. ``on_rejected``: what
    becomes of a call that is not passed on: a message that says so, or nothing.
    ``arguments="stream"`` shows calls while they are written (give the parser
    the same); one that is then taken back ends as "incomplete", with a message.

    ``usage`` is for whoever counts. ``calls`` are the calls for the client to
    run, ``searches`` those for tools that are answered here. ``rejections`` were
    not passed on, ``untold`` are those of them that nobody was told of.
    ``problems`` are the parser's, counted by code; ``error`` is what a failed
    response ended in, for a log. ``stopped_by`` is the stop string that ended
    the text, if one did.
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
        self.id = id or new_id(ids.RESPONSE)
        self.tools = tools
        self.choice = choice
        self.new_id = new_id
        self.on_rejected = on_rejected
        self.arguments: Arguments = arguments
        self.usage = Usage()
        self.calls: list[ToolCall] = []
        self.searches: list[ToolCall] = []
        self.rejections: list[Rejection] = []
        self.untold: list[Rejection] = []
        self.problems: Counter[str] = Counter()
        self.stopped_by: str | None = None
        self.error: Exception | None = None
        self._echo = echo
        self._created_at = created_at
        self._form = SUMMARY if summary else THOUGHTS[event_names]
        self._seal = encrypted.seal if encrypted else None
        self._out = Outbox()
        self._output: list[dict[str, Any]] = []
        self._open: OpenItem | None = None
        self._live: LiveCall | None = None
        self._waiting: list[Event] = []
        self._said: set[str] = set()
        self._status: Status = "in_progress"
        self._ending: dict[str, Any] = {}

    # -- the response as a whole ----------------------------------------------

    @property
    def response(self) -> dict[str, Any]:
        """The response object as it is now: the items that are done, and the usage at the end."""
        return envelope(
            self._echo,
            id=self.id,
            created_at=self._created_at,
            status=self._status,
            output=self._output,
            usage=self.usage.body() if self.over else None,
            **self._ending,
        )

    @property
    def status(self) -> Status:
        """The response's status."""
        return self._status

    @property
    def over(self) -> bool:
        """Whether its last event was told."""
        return self._status in OVER

    @property
    def sequence(self) -> int:
        """The number of the next event."""
        return self._out.sequence

    def start(self, *, queued: bool = False) -> list[dict[str, Any]]:
        """The first events: ``response.created`` and ``response.in_progress``.

        With ``queued``: ``created`` and ``queued``; a later ``start()`` then
        gives ``in_progress``. What was told is not told again.
        """
        if self.over:
            return []
        self._status = "queued" if queued else "in_progress"
        for name in ("created", self._status):
            if name not in self._said:
                self._said.add(name)
                self._out.put(name, response=self.response)
        return self._out.take()

    def finish(self, completed_at: int, *, reason: str | None = None) -> list[dict[str, Any]]:
        """The end: ``response.completed``, or ``response.incomplete`` because of ``reason``.

        An item that ``reason`` cut is incomplete too. After an end there is no other.
        """
        if reason is None:
            return self._end("completed", "completed", completed_at=completed_at)
        return self._end("incomplete", "incomplete", incomplete_details={"reason": reason})

    def fail(self, error: Exception) -> list[dict[str, Any]]:
        """The end: ``response.failed``; what was written so far stays, incomplete."""
        self.error = error
        return self._end("failed", "failed", error=failure_of(error))

    def cancel(self) -> list[dict[str, Any]]:
        """The end of a response that was cancelled.

        The API has no event of that name: it is ``response.incomplete``, with
        the status "cancelled".
        """
        return self._end("cancelled", "incomplete")

    def _end(self, status: Status, event: str, **ending: Any) -> list[dict[str, Any]]:
        if self.over:
            return []
        whole = status == "completed"
        cut = not whole and self._open is not None and not self._open.ended
        last: Phase = "commentary" if self.calls else "final_answer"
        self._drop_live()
        self._close("incomplete" if cut else "completed", last if whole else None)
        self._status = status
        self._ending = ending
        self._out.put(event, response=self.response)
        return self._out.take()

    # -- what the model writes ------------------------------------------------

    def feed(self, event: Event, logprobs: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
        """The events that one event of the parser brings.

        ``logprobs`` are those of the tokens of a piece of the answer.
        """
        match event:
            case CallEnd() | CallRejected() if self._live and event.index != self._live.index:
                self._waiting.append(event)  # the call that is shown is closed before any other
            case ContentDelta():
                self._answer(event.text, logprobs)
            case ReasoningDelta():
                self._think(event)
            case MessageStart():
                self._message_start(event)
            case MessageEnd():
                if self._open is not None and event.terminator is not None:
                    self._open.ended = True
            case CallStart() if self.arguments == "stream":
                self._call_start(event)
            case ArgumentsDelta():
                if self._live is not None and self._live.index == event.index:
                    self._live.grow(event.json)
            case CallEnd():
                self._call_end(event)
            case CallRejected():
                self._call_rejected(event)
            case Problem():
                self.problems[event.code] += 1
        return self._out.take()

    def tell(self) -> list[dict[str, Any]]:
        """Say in messages which calls were not passed on, where that was left out."""
        for rejection in self.untold:
            self._say(rejection.message())
        self.untold.clear()
        return self._out.take()

    def found(self, tools: Iterable[Declared]) -> list[dict[str, Any]]:
        """The answer to a search: an item with ``tools``."""
        item = search_output(self.new_id(ids.SEARCH_OUTPUT), tools)
        self._start(OpenItem(self._out, self._place("commentary"), item))
        self._close()
        return self._out.take()

    def compaction(self, blob: str) -> list[dict[str, Any]]:
        """A summary of the conversation in place of it, as a blob."""
        item = {"id": self.new_id(ids.COMPACTION), "type": "compaction", "encrypted_content": blob}
        self._start(OpenItem(self._out, self._place("commentary"), item))
        self._close()
        return self._out.take()

    def _message_start(self, event: MessageStart) -> None:
        if self._open is not None:
            self._open.ended = True
        if event.recipient not in (None, wire.SELF, wire.USER):
            self._close(phase="commentary")  # a call comes: what was said led up to it

    def _think(self, event: ReasoningDelta) -> None:
        if event.start == event.end:  # the line break between two bodies: each is an item
            if isinstance(self._open, OpenReasoning):
                self._open.ended = True
            return
        if not event.text:
            return
        if not isinstance(self._open, OpenReasoning) or self._open.ended:
            place, item_id = self._place(), self.new_id(ids.REASONING)
            self._start(OpenReasoning(self._out, place, item_id, self._form, self._seal))
        assert isinstance(self._open, OpenReasoning)
        self._open.grow(event.text)

    def _answer(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> None:
        if not text:
            return
        if not isinstance(self._open, OpenMessage) or self._open.ended:
            self._start(OpenMessage(self._out, self._place(), self.new_id(ids.MESSAGE)))
        assert isinstance(self._open, OpenMessage)
        self._open.grow(text, logprobs)

    def _say(self, text: str) -> None:
        """A message of our own, not the model's."""
        self._start(OpenMessage(self._out, self._place("commentary"), self.new_id(ids.MESSAGE)))
        self._answer(text)
        self._close(phase="commentary")

    # -- calls ----------------------------------------------------------------

    def _call_end(self, event: CallEnd) -> None:
        call = event.call
        rejection = objection(call, self.tools, self.choice)
        if rejection is not None:
            self._reject(rejection, shown=self._take_back(event.index))
        elif self.tools.kind(call) == "tool_search":
            self._search(call)
        elif self._live is not None and self._live.index == event.index:
            self.calls.append(call)
            self._settle(self._live, self._input(call))
        else:
            self._pass_on(call)

    def _pass_on(self, call: ToolCall) -> None:
        item = self._opened(call)
        text = self._input(call)
        for start in range(0, len(text), CHUNK):
            item.grow(text[start : start + CHUNK])
        self._close()
        self.calls.append(call)

    def _search(self, call: ToolCall) -> None:
        server = self.tools.server_search
        item = search_call(self.new_id(ids.SEARCH_CALL), call, server=server)
        self._start(OpenItem(self._out, self._place("commentary"), item))
        self._close(arguments=call.arguments)
        (self.searches if server else self.calls).append(call)

    def _opened(self, call: ToolCall) -> OpenCall:
        """The item of a call, as it is announced."""
        custom = self.tools.kind(call) == "custom"
        place = self._place("commentary")
        kind, item_id = ("custom_tool_call", ids.CUSTOM_CALL) if custom else FUNCTION
        item = call_item(kind, self.new_id(item_id), call.id, self.tools.client_name(call))
        opened = (OpenCustom if custom else OpenFunction)(self._out, place, item)
        self._start(opened)
        return opened

    def _input(self, call: ToolCall) -> str:
        if self.tools.kind(call) == "custom":
            return self.tools.custom_input(call)
        return call.arguments_json

    def _call_rejected(self, event: CallRejected) -> None:
        shown = event.index is not None and self._take_back(event.index)
        if event.rejected is not None:
            self._reject(Rejection.of(event.rejected), shown=shown)
        elif shown:
            self._say(TAKEN_BACK)

    def _reject(self, rejection: Rejection, *, shown: bool) -> None:
        self.rejections.append(rejection)
        if shown or self.on_rejected == "message":
            self._say(rejection.message())
        else:
            self.untold.append(rejection)

    # -- calls that are shown while they are written --------------------------

    def _call_start(self, event: CallStart) -> None:
        call = ToolCall(
            event.index,
            event.id,
            event.name,
            event.namespace,
            event.raw_name,
            event.recipient,
            arguments={},
            arguments_json="{}",
        )
        target = self.tools.target(call)
        allowed = target is not None and (self.choice is None or self.choice.permits(target))
        # One at a time; what else the message holds is shown when it is decided.
        if self._live is None and allowed and self.tools.kind(call) != "tool_search":
            self._live = LiveCall(event.index, self._opened(call))

    def _settle(self, live: LiveCall, text: str) -> None:
        self._live = None
        live.show(text)
        self._close()
        self._go_on()

    def _take_back(self, index: int) -> bool:
        """Close the call shown under ``index`` as incomplete; whether there was one."""
        if self._live is None or self._live.index != index:
            return False
        self._drop_live()
        return True

    def _drop_live(self) -> None:
        if self._live is not None:
            self._live = None
            self._close("incomplete")
            self._go_on()

    def _go_on(self) -> None:
        """What became of other calls while one was shown."""
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            if isinstance(event, CallEnd):
                self._call_end(event)
            elif isinstance(event, CallRejected):
                self._call_rejected(event)

    # -- one item after another -----------------------------------------------

    def _place(self, phase: Phase | None = None) -> int:
        """The place of the next item; the one before is closed, a message as ``phase``."""
        self._close(phase=phase)
        return len(self._output)

    def _start(self, item: OpenItem) -> None:
        self._open = item

    def _close(
        self, status: ItemStatus = "completed", phase: Phase | None = None, **changes: Any
    ) -> None:
        """Close what is open. ``phase`` is what a message was for, once that is known."""
        item, self._open = self._open, None
        if item is None:
            return
        if phase is not None and isinstance(item, OpenMessage):
            changes["phase"] = phase
        self._output.append(item.close(status, **changes))


FUNCTION: Final = ("function_call", ids.FUNCTION_CALL)

TAKEN_BACK: Final = (
    "A call was shown while it was written, and then taken back: the model's text turned out to "
    "be something else. It must not be run."
)
