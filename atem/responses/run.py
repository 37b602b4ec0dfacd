"""A response on its way: steps of the model in, events out, turn after turn.

Rules: pushed, never pulled, so that whoever has an event loop feeds it there and
does the rest in a thread: to begin and to conclude a turn renders, encodes,
checks and asks the engine, and may take long; to feed a step doesn't. What is
begun is closed by whoever reads the steps. One response may take several turns of
the model: after a search for tools that is answered here, and where a turn was
not what was asked and may be tried again. A turn that still isn't ends in
``response.failed``, never in an answer that pretends (responses.md 1.6, 1.8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from ..engine import close
from ..errors import EngineError
from ..messages import Message, ToolCall
from .blob import Blobs
from .running.failures import refusal_of
from .running.held import Held
from .system_text import LABELS
from .tool_search import told

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from ..engine import Finish
    from ..messages import RejectedCall
    from ..parser.fold import Turn
    from .ask import Ask
    from .builder import ResponseBuilder
    from .running.held import Told
    from .tools import ClientTools, Declared

S = TypeVar("S")

OnRejected: TypeAlias = Literal["message", "retry"]
Batch: TypeAlias = list[dict[str, Any]]


class OneTurn(Protocol[S]):
    """A turn that ``steps`` write. ``finish`` is how it ended, None as long as nobody said."""

    steps: Iterator[S]
    finish: Finish | None

    def feed(self, step: S, /) -> Iterable[Told]:
        """What a step brings; whoever has enough reads no further."""

    def end(self) -> Iterable[Told]:
        """What is left, as no step follows."""

    def turn(self) -> Turn:
        """What was written so far."""

    def count(self) -> None:
        """Count it, now that it has ended."""


MAX_SEARCHES: Final = 8
"""Turns of one response that only search for tools."""

FOUND_AT_MOST: Final = 8
"""Tools that one search finds."""

CUT: Final = "max_output_tokens"

CALL_NOW: Final = "A tool has to be called now. Call one of: {}."
NO_CALL: Final = "The model called no tool, though tool_choice asks for a call."
WRITE_AGAIN: Final = "The answer does not fit its format:\n{}\nWrite the whole answer again."
UNFIT: Final = "The model's answer does not fit text.format: {}"
SEARCHES: Final = "The model searched for tools {} times without going on."
NO_REASON: Final = "The engine stopped without saying why."
BROKEN_OFF: Final = "The engine broke the answer off before its end."


class Run(Generic[S]):
    """The answer to ``ask``, told by ``builder``.

    ``writes`` gives a turn for an Ask and its room in tokens; ``constrained`` says
    that a grammar holds them to what was asked. ``clock`` gives seconds since 1970.
    A call that is not passed on is told to the client (``on_rejected="message"``),
    or to the model ("retry") as long as no other call of its turn was passed on.
    ``retries`` is how often a turn may be asked for again: because of such a call,
    of a format, or of a call that has to be. ``blobs`` seals the summary of a
    compaction; by default it is no secret.

    ``steps`` are those of the turn that is being written, to be fed one by one;
    None before the first and after the last. ``enough``: the turn has ended, or
    takes no more, and is to be concluded.
    """

    def __init__(
        self,
        ask: Ask,
        writes: Callable[[Ask, int | None], OneTurn[S]],
        builder: ResponseBuilder,
        clock: Callable[[], int],
        *,
        on_rejected: OnRejected = "message",
        retries: int = 0,
        constrained: bool = False,
        blobs: Blobs | None = None,
    ) -> None:
        self.ask = ask
        self.builder = builder
        self.steps: Iterator[S] | None = None
        self._writes = writes
        self._clock = clock
        self._tells_model = on_rejected == "retry"
        self._retries = retries
        self._constrained = constrained
        self._blobs = blobs or Blobs(None, ask.model)
        self._searches = MAX_SEARCHES
        self._held = Held(holds=False)
        self._calls = self._found = self._rejected = 0

    def begin(self) -> None:
        """Ask for the first turn. Raises ApiError for whatever can be refused."""
        try:
            self._begin()
        except EngineError as error:
            raise refusal_of(error) from error

    def feed(self, step: S) -> Batch:
        """The events that a step brings."""
        return self._pushed(self._writing.feed(step))

    @property
    def enough(self) -> bool:
        """Whether the turn takes no more steps."""
        return self._writing.finish is not None

    def conclude(self, error: Exception | None = None) -> Batch:
        """What follows from a turn that has ended, or broke off in ``error``.

        If that is another turn, it begins. Whatever goes wrong ends the response as
        failed; ``builder.error`` holds it.
        """
        events: Batch = []
        try:
            for batch in self._concluded(error):
                events += batch
        except Exception as broke:  # noqa: BLE001 - the client is told, whatever it was
            events += self.builder.fail(broke)
        return events

    def leave(self) -> None:
        """Nobody wants the rest: count what was written."""
        if self.steps is not None:
            self.steps = None
            self._writing.count()

    def events(self) -> Generator[Batch, None, None]:
        """All of it, once it was begun: each batch when its step has come, in the reader's thread.

        Closing it stops what writes at once, and tells nothing.
        """
        try:
            yield self.builder.start()
            while self.steps is not None:
                error = yield from self._read(self.steps)
                yield from filter(None, [self.conclude(error)])
        finally:
            close(self.steps)
            self.leave()

    def _read(self, steps: Iterator[S]) -> Generator[Batch, None, Exception | None]:
        """Feed what comes; what it broke off in."""
        try:
            for step in steps:
                yield from filter(None, [self.feed(step)])
                if self.enough:
                    break
            close(steps)
        except Exception as error:  # noqa: BLE001 - for whoever concludes the turn
            return error
        return None

    def _begin(self) -> None:
        builder, ask = self.builder, self.ask
        builder.tools, builder.choice = ask.tools, ask.choice
        builder.on_rejected = "drop" if self._tells_model and self._retries else "message"
        self._calls, self._found = len(builder.calls), len(builder.searches)
        self._rejected = len(builder.rejections)
        self._held = Held(holds="format" in ask.must and not self._constrained)
        self._writing = self._writes(ask, self._room())
        self.steps = self._writing.steps

    def _room(self) -> int | None:
        """Tokens that are left of those the client allows, if it said so."""
        if self.ask.prewarm:
            return 1
        limit = self.ask.max_tokens
        return None if limit is None else limit - self.builder.usage.output

    # -- a turn ----------------------------------------------------------------

    def _pushed(self, several: Iterable[Told]) -> Batch:
        """What they bring, up to where the turn takes no more."""
        events: Batch = []
        for one in several:
            events += self._fed(self._held.take(one))
            if self._stops_early():
                self._writing.finish = "stop"
                break
        return events

    def _fed(self, several: Iterable[Told]) -> Batch:
        events: Batch = []
        if not (self.ask.compact or self.ask.prewarm):
            for one in several:
                events += self.builder.feed(one.event, one.logprobs)
                if self._stops_early():
                    break
        return events

    def _stops_early(self) -> bool:
        """Whether the turn ends here: one call at a time was asked for, or the prompt alone."""
        one = not self.ask.parallel and len(self.builder.calls) > self._calls
        return one or self.ask.prewarm

    def _concluded(self, error: Exception | None) -> Iterator[Batch]:
        writing, self.steps = self._writing, None
        try:
            if error is not None:
                raise error
            if not self._stops_early():
                yield self._pushed(writing.end())
        finally:
            writing.count()
        yield from self._followed(writing)

    # -- what follows from it ----------------------------------------------------

    def _followed(self, writing: OneTurn[S]) -> Iterator[Batch]:
        if self.ask.prewarm:
            self.builder.usage.output = 0
            yield self._finished()
        elif writing.finish in (None, "abort"):
            raise EngineError(NO_REASON if writing.finish is None else BROKEN_OFF)
        elif writing.finish == "length":
            yield self._fed(self._held.release())
            yield self.builder.tell()
            yield self._finished(CUT)
        elif self.ask.compact:
            yield self.builder.compaction(self._blobs.seal(writing.turn().content))
            yield self._finished()
        else:
            yield from self._complete(writing.turn())

    def _finished(self, reason: str | None = None) -> Batch:
        return self.builder.finish(self._clock(), reason=reason)

    def _complete(self, turn: Turn) -> Iterator[Batch]:
        """What follows from a turn that the model ended itself."""
        passed_on = (
            len(self.builder.calls) > self._calls or len(self.builder.searches) > self._found
        )
        faults = [] if passed_on else self.ask.format.faults(turn.content)
        yield self._fed(self._held.drop() if faults else self._held.release())
        found = self._searched()
        yield from map(self.builder.found, found.values())
        if len(self.builder.calls) > self._calls:
            yield self.builder.tell()
            yield self._finished()
        elif found:
            yield self.builder.tell()
            yield from self._searched_on(turn, found)
        else:
            yield from self._checked(turn, faults)

    def _searched(self) -> dict[str, tuple[Declared, ...]]:
        """The searches of this turn by the ids of their calls, with what they find."""
        return {
            call.id: self.ask.tools.search(*_query(call))
            for call in self.builder.searches[self._found :]
        }

    def _searched_on(
        self, turn: Turn, found: Mapping[str, tuple[Declared, ...]]
    ) -> Iterator[Batch]:
        self._searches -= 1
        if self._searches < 0:
            raise EngineError(SEARCHES.format(MAX_SEARCHES))
        tools = self.ask.tools.with_found(tool for several in found.values() for tool in several)
        # A call was asked for, and here it was.
        choice = replace(self.ask.choice, required=False)
        if choice.mode in ("required", "named"):
            choice = replace(choice, mode="auto")
        self.ask = replace(self.ask, choice=choice)
        yield from self._again([*turn.messages, *self._results(turn, found)], tools)

    def _checked(self, turn: Turn, faults: list[str]) -> Iterator[Batch]:
        """Try again if the turn isn't what was asked, as often as that is allowed."""
        rejections = self.builder.rejections[self._rejected :]
        failure = None
        if "call" in self.ask.must:
            failure = NO_CALL
        elif faults and not rejections:
            failure = UNFIT.format("; ".join(faults))
        told = bool(faults) and not self._held.holds  # and can't be taken back
        if self._retries > 0 and not told and (failure or (rejections and self._tells_model)):
            self._retries -= 1
            self.builder.untold.clear()
            answers = self._results(turn, {}) or [_system(self._request(faults))]
            yield from self._again([*turn.messages, *answers])
            return
        yield self.builder.tell()
        if failure:
            raise EngineError(failure)
        yield self._finished()

    def _request(self, faults: list[str]) -> str:
        if "call" in self.ask.must:
            allowed = self.ask.tools.callable(self.ask.choice)
            return CALL_NOW.format(", ".join(tool.tool.wire_name for tool in allowed))
        return WRITE_AGAIN.format("\n".join(f"- {fault}" for fault in faults))

    def _again(self, messages: list[Message], tools: ClientTools | None = None) -> Iterator[Batch]:
        """Another turn of the model, behind ``messages``; the end if no token is left for it."""
        self.ask = self.ask.then(messages, tools=tools)
        room = self._room()
        if room is not None and room < 1:
            yield self._finished(CUT)
        else:
            self._begin()

    def _results(self, turn: Turn, found: Mapping[str, tuple[Declared, ...]]) -> list[Message]:
        """The answer to each call of a turn, none of which the client got."""
        told = {
            rejection.call.id or id(rejection.call): rejection.feedback(self.ask.tools.toolset)
            for rejection in self.builder.rejections[self._rejected :]
        }
        calls = [call for message in turn.messages for call in message.calls]
        return [_result(call, found) or told[call.id or id(call)] for call in calls]


def _query(call: ToolCall) -> tuple[str, int]:
    """What a search asks for; a model's mistake finds nothing, or the usual number."""
    query, limit = call.arguments.get("query"), call.arguments.get("limit")
    number = limit if isinstance(limit, int) and not isinstance(limit, bool) else FOUND_AT_MOST
    return (query if isinstance(query, str) else "", max(1, min(number, FOUND_AT_MOST)))


def _result(
    call: ToolCall | RejectedCall, found: Mapping[str, tuple[Declared, ...]]
) -> Message | None:
    if not isinstance(call, ToolCall) or call.id not in found:
        return None
    tools = [tool.tool for tool in found[call.id]]
    text = told((tool.wire_name for tool in tools), tools)
    return Message("tool", text, name=call.raw_name, call_id=call.id)


def _system(text: str) -> Message:
    """Something that the model is told on the way, as later system messages are."""
    return Message("user", f"{LABELS['system']}{text}")
