"""A request answered: the model's turns, and what follows from each.

Rules: prompt, engine, parser, builder, and nothing between them that reads the
text again. One response may take several turns of the model: after a search for
tools that is answered here, and where a turn was not what was asked and may be
tried again. A turn that still isn't ends in ``response.failed``, never in an
answer that pretends (responses.md 1.6, 1.8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from ..errors import EngineError
from ..messages import Message, ToolCall
from . import ids
from .blob import Blobs
from .builder import ResponseBuilder
from .running.failures import refusal_of
from .running.held import Held
from .running.writing import Writing
from .system_text import LABELS
from .tool_search import told

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from ..engine import Engine, Finish
    from ..messages import RejectedCall
    from ..parser.fold import Turn
    from .ask import Ask
    from .builder import Arguments
    from .ids import NewId
    from .output.open_text import EventNames
    from .running.held import Told
    from .tools import ClientTools, Declared

OnRejected: TypeAlias = Literal["message", "retry"]
Batch: TypeAlias = list[dict[str, Any]]


class OneTurn(Protocol):
    """A turn being written. ``finish`` is how it ended, None as long as nobody said."""

    finish: Finish | None

    def events(self) -> Iterator[Told | None]:
        """What it brings, event by event; None where nothing has come yet."""

    def turn(self) -> Turn:
        """What was written so far."""

    def close(self) -> None:
        """Stop it."""


Writes: TypeAlias = "Callable[[Ask, int | None], OneTurn]"

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


def new_builder(
    ask: Ask,
    *,
    created_at: int,
    blobs: Blobs | None = None,
    new_id: NewId = ids.new_id,
    arguments: Arguments = "whole",
    event_names: EventNames = "openai",
    id: str | None = None,  # noqa: A002 - the API's name for it
) -> ResponseBuilder:
    """The builder for ``ask``. ``blobs`` seals reasoning, if the client asked for that."""
    return ResponseBuilder(
        ask.echo,
        ask.tools,
        created_at=created_at,
        new_id=new_id,
        summary=ask.summary,
        encrypted=blobs if ask.encrypted else None,
        choice=ask.choice,
        arguments=arguments,
        event_names=event_names,
        id=id,
    )


def answer(
    ask: Ask,
    engine: Engine,
    builder: ResponseBuilder,
    *,
    clock: Callable[[], int],
    on_rejected: OnRejected = "message",
    retries: int = 1,
    blobs: Blobs | None = None,
) -> Generator[Batch, None, None]:
    """The events of the whole response, in batches, the last of which ends it.

    ``clock`` gives seconds since 1970. A call that is not passed on is told to
    the client ("message"), or to the model ("retry") as long as no other call
    of its turn was passed on. ``retries`` is how often a turn may be asked for
    again: because of such a call, of a format, or of a call that has to be.
    ``blobs`` seals the summary of a compaction; by default it is no secret.

    What can be refused is refused by this call, as an ApiError. Later errors end
    the response as failed; ``builder.error`` holds them. Closing the iterator
    stops the engine at once and tells nothing.
    """

    def written(ask: Ask, room: int | None) -> Writing:
        return Writing(ask, engine, builder, channel=ask.channel(engine.info), room=room)

    return turn_by_turn(
        ask,
        written,
        builder,
        clock,
        retries=retries,
        tells_model=on_rejected == "retry",
        constrained="grammar" in engine.info.features,
        blobs=blobs,
    )


def turn_by_turn(
    ask: Ask,
    writes: Writes,
    builder: ResponseBuilder,
    clock: Callable[[], int],
    *,
    retries: int = 0,
    tells_model: bool = False,
    constrained: bool = False,
    blobs: Blobs | None = None,
) -> Generator[Batch, None, None]:
    """What :func:`answer` does, with turns that ``writes`` gives for an Ask and its room in tokens.

    ``constrained`` says that they are held to a grammar while they are written.
    The first is asked for by this call. Raises ApiError.
    """
    run = _Run(
        ask, writes, builder, clock, retries=retries, tells_model=tells_model, holds=not constrained
    )
    try:
        run.begin()
    except EngineError as error:
        raise refusal_of(error) from error
    return run.events(blobs or Blobs(None, ask.model))


class _Run:
    """One response on its way."""

    def __init__(
        self,
        ask: Ask,
        writes: Writes,
        builder: ResponseBuilder,
        clock: Callable[[], int],
        *,
        retries: int,
        tells_model: bool,
        holds: bool,
    ) -> None:
        self.ask = ask
        self.writes = writes
        self.builder = builder
        self.clock = clock
        self.retries = retries
        self.tells_model = tells_model
        self.holds = holds
        self.searches = MAX_SEARCHES
        self.writing: OneTurn | None = None
        self.held = Held(holds=False)
        self.calls = self.found = self.rejected = 0

    def begin(self) -> None:
        """Ask the model for a turn. Raises ApiError, and what the engine refuses with."""
        builder, ask = self.builder, self.ask
        builder.tools, builder.choice = ask.tools, ask.choice
        builder.on_rejected = "drop" if self.tells_model and self.retries else "message"
        self.calls, self.found = len(builder.calls), len(builder.searches)
        self.rejected = len(builder.rejections)
        self.held = Held(holds="format" in ask.must and self.holds)
        self.writing = self.writes(ask, self._room())

    def _room(self) -> int | None:
        """Tokens that are left of those the client allows, if it said so."""
        if self.ask.prewarm:
            return 1
        limit = self.ask.max_tokens
        return None if limit is None else limit - self.builder.usage.output

    def events(self, blobs: Blobs) -> Generator[Batch, None, None]:
        """See :func:`answer`."""
        try:
            yield self.builder.start()
            while self.writing is not None:
                writing, self.writing = self.writing, None
                yield from self._written(writing)
                yield from filter(None, self._concluded(writing, blobs))
        except Exception as error:  # noqa: BLE001 - the client is told, whatever it was
            yield self.builder.fail(error)
        finally:
            if self.writing is not None:
                self.writing.close()

    # -- a turn ----------------------------------------------------------------

    def _written(self, writing: OneTurn) -> Iterator[Batch]:
        try:
            for told in writing.events():
                if told is None:
                    yield []
                    continue
                if batch := self._fed(self.held.take(told)):
                    yield batch
                if self._enough() or self.ask.prewarm:
                    writing.finish = "stop"
                    break
        finally:
            writing.close()

    def _fed(self, several: Iterable[Told]) -> Batch:
        events: Batch = []
        if not (self.ask.compact or self.ask.prewarm):
            for told in several:
                events += self.builder.feed(told.event, told.logprobs)
                if self._enough():
                    break
        return events

    def _enough(self) -> bool:
        """Whether the turn ends here, because one call at a time was asked for."""
        return not self.ask.parallel and len(self.builder.calls) > self.calls

    # -- what follows from it ----------------------------------------------------

    def _concluded(self, writing: OneTurn, blobs: Blobs) -> Iterator[Batch]:
        if self.ask.prewarm:
            self.builder.usage.output = 0
            yield self._finished()
        elif writing.finish in (None, "abort"):
            raise EngineError(NO_REASON if writing.finish is None else BROKEN_OFF)
        elif writing.finish == "length":
            yield self._fed(self.held.release())
            yield self.builder.tell()
            yield self._finished(CUT)
        elif self.ask.compact:
            yield self.builder.compaction(blobs.seal(writing.turn().content))
            yield self._finished()
        else:
            yield from self._complete(writing.turn())

    def _finished(self, reason: str | None = None) -> Batch:
        return self.builder.finish(self.clock(), reason=reason)

    def _complete(self, turn: Turn) -> Iterator[Batch]:
        """What follows from a turn that the model ended itself."""
        passed_on = len(self.builder.calls) > self.calls or len(self.builder.searches) > self.found
        faults = [] if passed_on else self.ask.format.faults(turn.content)
        yield self._fed(self.held.drop() if faults else self.held.release())
        found = self._searched()
        yield from map(self.builder.found, found.values())
        if len(self.builder.calls) > self.calls:
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
            for call in self.builder.searches[self.found :]
        }

    def _searched_on(
        self, turn: Turn, found: Mapping[str, tuple[Declared, ...]]
    ) -> Iterator[Batch]:
        self.searches -= 1
        if self.searches < 0:
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
        rejections = self.builder.rejections[self.rejected :]
        failure = None
        if "call" in self.ask.must:
            failure = NO_CALL
        elif faults and not rejections:
            failure = UNFIT.format("; ".join(faults))
        told = bool(faults) and not self.held.holds  # and can't be taken back
        if self.retries > 0 and not told and (failure or (rejections and self.tells_model)):
            self.retries -= 1
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
            self.begin()

    def _results(self, turn: Turn, found: Mapping[str, tuple[Declared, ...]]) -> list[Message]:
        """The answer to each call of a turn, none of which the client got."""
        told = {
            rejection.call.id or id(rejection.call): rejection.feedback(self.ask.tools.toolset)
            for rejection in self.builder.rejections[self.rejected :]
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
