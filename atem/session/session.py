"""A conversation with a model that has tools.

Rules: the history is changed at few places, by whole messages, and can be
rendered after each of them. A call runs after its turn is over and complete,
and after the policy allowed it; there is no other way to ``run``. What is
handed out is a copy: what others do to it changes neither history nor call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

from ..engine import Request, Step, close, tokenizer_of
from ..errors import ContextOverflow, OptionError
from ..messages import Message, RejectedCall, ToolCall
from ..parser.api import parse_stream
from ..parser.events import TurnEnd
from ..parser.fold import collect
from ..render import render, strength_of
from ..render.chat_form import chat_of
from ..tools import Allow, Deny, ToolSet, ask_all, first_of
from . import replies
from .events import Feedback, TaskEnd, ToolEnd, ToolStart, TurnStart
from .limits import Limits, Tally

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..engine import Engine, Sampling
    from ..messages import Content
    from ..parser.events import Event
    from ..parser.fold import Turn
    from ..render import Prompt
    from ..tools import Opinion
    from .events import Outcome, SessionEvent
    from .replies import Run

Ask: TypeAlias = Callable[[ToolCall, str], bool]
"""Puts a question about a call to a person; only True lets it run."""


class Session:
    """A conversation: ``send`` a message, and events tell what the model and its tools do.

    ``tools`` is whatever ``ToolSet.of`` takes. ``run`` runs a call that may run
    (by default the tools' own functions do), ``policy`` decides whether it may
    (by default a person decides), ``ask`` puts that to the person, and without
    it the answer is no. ``system`` goes before ``history``, with which the
    conversation begins. ``reasoning_strength`` or ``effort``, ``sampling`` and
    ``limits`` hold for every turn; without ``sampling`` it is what the checkpoint
    recommends.

    Raises OptionError, InvalidTool or RenderError for what can't work. The
    engine stays the caller's to close. A session is for one thread.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        tools: object = None,
        run: Run | None = None,
        policy: Opinion = ask_all,
        ask: Ask | None = None,
        system: str | None = None,
        history: Iterable[Message] = (),
        reasoning_strength: str | None = None,
        effort: str | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._engine = engine
        self._tools = ToolSet.of(tools)
        self._run = run or replies.run_functions(self._tools)
        self._policy = first_of(policy)
        self._ask = ask
        self._strength: dict[str, Any] = {
            "reasoning_strength": reasoning_strength,
            "effort": effort,
        }
        self._sampling = sampling or engine.info.sampling
        self._limits = limits or Limits()
        before = [] if system is None else [Message("system", system)]
        self._history = [*before, *deepcopy(list(history))]
        self._busy = False
        self._prompt()  # what can't be rendered is said now

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far, as data of its own: changing it changes nothing here."""
        return deepcopy(tuple(self._history))

    @property
    def tools(self) -> ToolSet:
        """The declared tools."""
        return self._tools

    def send(self, content: Content) -> Generator[SessionEvent, None, None]:
        """Say ``content`` as the user; the events until the model is done, ``TaskEnd`` last.

        Nothing happens before the first event is asked for. Closing the
        iterator stops at once: the turn that was being written is forgotten,
        what was finished stays, and the history says of each call whether it
        ran. What an engine or a policy raises passes through; if the model has
        not finished a turn by then, or the context is too small for its first,
        ``content`` is taken back too. Raises OptionError while another
        ``send`` is going on.
        """
        if self._busy:
            raise OptionError("another send() is going on; read it to its end, or close it")
        self._busy = True
        try:
            yield (yield from self._task(content))
        finally:
            self._busy = False

    def _task(self, content: Content) -> Generator[SessionEvent, None, TaskEnd]:
        tally = Tally(self._limits)
        before = len(self._history)
        self._history.append(Message("user", deepcopy(content)))
        for number in range(1, self._limits.turns + 1):
            yield TurnStart(number)
            try:
                *_, last = seen = yield from self._written()
            except Exception as error:
                if number == 1:
                    del self._history[before:]
                if isinstance(error, ContextOverflow):
                    return TaskEnd("context", str(error))
                raise
            turn = collect(seen)
            first = self._remember(turn)
            yield last
            yield from self._answer(turn, first, tally)
            if end := tally.end(turn):
                return end
        return tally.out_of_turns()

    def _prompt(self) -> Prompt:
        return render(self._history, tools=self._tools, **self._strength)

    def _chat(self) -> dict[str, Any] | None:
        """The same for an engine that is asked by chat completions."""
        if "chat" not in self._engine.info.features:
            return None
        given = any(self._strength.values())
        return chat_of(self._history, self._tools, strength_of(**self._strength) if given else None)

    def _written(self) -> Generator[Event, None, list[Event]]:
        """One turn of the model, event by event but for its ``TurnEnd``; all of them."""
        request = Request(
            self._prompt(), self._sampling, max_tokens=self._limits.tokens, chat=self._chat()
        )
        seen: list[Event] = []
        with ExitStack() as stack:
            steps = self._engine.generate(request)
            stack.callback(close, steps)
            events = parse_stream(
                _to_their_end(steps),
                tools=self._tools,
                tokenizer=tokenizer_of(self._engine),
                validate="reject",
            )
            stack.callback(close, events)
            for event in events:
                seen.append(deepcopy(event))
                if not isinstance(event, TurnEnd):  # the history comes before that
                    yield event
        return seen

    def _remember(self, turn: Turn) -> int:
        """Put ``turn`` into the history with an answer to each call; the place of the first."""
        calls = replies.calls_of(turn)
        answers = [replies.first_reply(call, self._tools, complete=turn.complete) for call in calls]
        self._history += [*deepcopy(turn.messages), *answers]
        return len(self._history) - len(answers)

    def _answer(self, turn: Turn, first: int, tally: Tally) -> Iterator[SessionEvent]:
        """Run what may run of ``turn``, whose answers begin at ``first`` of the history."""
        for place, call in enumerate(replies.calls_of(turn), first):
            if isinstance(call, RejectedCall):
                tally.rejected(call)
                yield Feedback(call, str(self._history[place].content))
                continue
            outcome: Outcome = "cut"
            if turn.complete:
                outcome = yield from self._decided(call, place)
            tally.answered(call, outcome)
            yield ToolEnd(call, str(self._history[place].content), outcome)

    def _decided(self, call: ToolCall, place: int) -> Generator[ToolStart, None, Outcome]:
        """Run a call if it may run; its answer is then at ``place`` of the history."""
        denial = self._denial(deepcopy(call))
        if denial is not None:
            self._history[place] = replies.reply(call, denial)
            return "denied"
        yield ToolStart(deepcopy(call))
        self._history[place] = replies.reply(call, replies.RUNNING)
        outcome: Outcome = "done"
        try:
            text = self._run(deepcopy(call))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything: the model is told
            outcome, text = "failed", replies.failure(error)
        if not isinstance(text, str):
            raise OptionError(f"run gave a {type(text).__name__}; it gives a call's result as text")
        self._history[place] = replies.reply(call, text)
        return outcome

    def _denial(self, call: ToolCall) -> str | None:
        """Why ``call`` must not run, or None if it may."""
        decision = self._policy(call)
        if isinstance(decision, Allow):
            return None
        if isinstance(decision, Deny):
            return f"{replies.DENIED} {decision.reason}".rstrip()
        if self._ask is None:
            return replies.UNASKED
        return None if self._ask(call, decision.question) is True else replies.REFUSED


def _to_their_end(steps: Iterable[Step]) -> Iterator[Step]:
    """``steps``, which were cut if none of them says why it is the last."""
    finish = None
    for step in steps:
        finish = step.finish or finish
        yield step
    if finish is None:
        yield Step(finish="abort")
