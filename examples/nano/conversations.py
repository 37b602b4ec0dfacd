"""Conversations: tasks run through the folder, rendered by atem, with what is to be learnt marked.

Rules: what is trained is token for token what the agent's loop asks with, in
every turn (a test compares them). Learnt is the whole assistant turn behind the
generation prompt, the headers between its messages included; never a prompt,
a result, or a call that was rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from families import FAMILIES, Call, Clash, Maker, Task, Turn, unwritable
from words import Words
from world import READ_ONLY, TOOLS, World

import atem

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

STRENGTHS: Final = ("low", "medium", "high", "xhigh")
LAST_STAGE: Final = 4
READ_ONLY_SHARE: Final = 0.15
"""Of the conversations; they lack the tool that writes."""


@dataclass
class Conversation:
    """Messages as an agent's loop collects them, with what is right at each turn."""

    strength: str
    tools: atem.ToolSet
    world: World
    messages: list[atem.Message] = field(default_factory=list)
    untrained: set[int] = field(default_factory=set)
    """Assistant turns, counted from 0, that are no example to follow."""
    turns: int = 0

    def ask(self, request: str) -> None:
        """The user's message."""
        self.messages.append(atem.Message("user", request))

    def wrong(self, task: Task) -> None:
        """A turn that was rejected, and the feedback on it."""
        if task.wrong is None:
            return
        self.untrained.add(self.turns)
        parsed = self._write(Turn((task.wrong,), plan=next(iter(task.steps())).plan))
        if not parsed.rejected or parsed.calls:
            raise AssertionError(f"{task.wrong} was to be rejected")
        self.messages += map(self.tools.feedback, parsed.rejected)

    def write(self, turn: Turn) -> None:
        """A turn of the assistant, read by atem, and the results of its calls."""
        parsed = self._write(turn)
        got = tuple((call.wire_name, call.arguments) for call in parsed.calls)
        if (got, parsed.content, parsed.complete) != (turn.calls, turn.answer, True):
            raise AssertionError(f"{turn} was read as {parsed}")
        for call in parsed.calls:
            result = self.world.run(call.wire_name, call.arguments)
            reply = atem.Message("tool", result, name=call.wire_name, call_id=call.id)
            self.messages.append(reply)

    def _write(self, turn: Turn) -> atem.Turn:
        text = turn_text(turn, self.strength)
        parsed = atem.parse(text, tools=self.tools, validate="reject", reason="stop")
        self.messages += parsed.messages
        self.turns += 1
        return parsed


def turn_text(turn: Turn, strength: str) -> str:
    """What the model writes behind ``<|start|>assistant``, the stop token included."""
    thought = turn.thought(strength)
    parts = [f" to=self<|message|>{thought}"] if thought else []
    parts += [_call_text(call) for call in turn.calls]
    parts += [f" to=user<|message|>{turn.answer}"] if turn.answer else []
    return "<|eom|><|start|>assistant".join(parts) + "<|eot|>"


def _call_text(call: Call) -> str:
    name, arguments = call
    values = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n'
        for key, value in arguments.items()
    )
    return (
        f" to={name}<|message|><atem:function_calls>\n"
        f'<atem:invoke name="{name}">\n{values}</atem:invoke>\n</atem:function_calls>'
    )


class Draw(NamedTuple):
    """How conversations are drawn: words and phrasings of which split, families, how many tasks."""

    words: str = "train"
    phrasings: str = "train"
    families: tuple[str, ...] = tuple(FAMILIES)
    tasks: tuple[int, ...] = (1, 1, 1, 2, 2, 3, 4, 5)
    spliced: bool = False
    stage: int = 3
    pieces: tuple[str, ...] = ()

    def maker(self, seed: random.Random, world: World) -> Maker:
        """What the families are given."""
        requests = self.stage == LAST_STAGE and self.words == "train"
        words = Words(seed, self.words, self.spliced, self.pieces, requests)  # type: ignore[arg-type]
        return Maker(words, world, self.phrasings, self.stage)


def tasks_of(draw: Draw, seed: random.Random) -> tuple[World, list[Task]]:
    """A folder and the tasks in it."""
    world = World()
    maker = draw.maker(seed, world)
    weights = [FAMILIES[name][draw.stage] for name in draw.families]
    names = seed.choices(draw.families, weights, k=seed.choice(draw.tasks))
    return world, [FAMILIES[name][0](maker) for name in names]


def conversation(draw: Draw, seed: random.Random) -> Conversation:
    """A whole conversation, drawn again where its tasks clash."""
    while True:
        world, tasks = tasks_of(draw, seed)
        made = Conversation(seed.choice(STRENGTHS), _tools(seed, tasks), world)
        if made.tools is READ_ONLY and seed.random() < 0.4:
            tasks.append(unwritable(draw.maker(seed, world)))
        try:
            for task in tasks:
                play(made, task)
        except Clash:
            continue
        return made


def _tools(seed: random.Random, tasks: Sequence[Task]) -> atem.ToolSet:
    writes = any(task.writes for task in tasks)
    return READ_ONLY if not writes and seed.random() < READ_ONLY_SHARE else TOOLS


def play(made: Conversation, task: Task) -> None:
    """Adds a task, as it goes when everything is done right."""
    made.ask(task.request)
    made.wrong(task)
    for turn in task.steps():
        made.write(turn)


class Sample(NamedTuple):
    """A conversation in tokens; ``learnt`` says of each whether the model has to predict it."""

    ids: list[int]
    learnt: list[bool]


@lru_cache
def system_block(strength: str, *, writes: bool) -> atem.Prompt:
    """The system block alone, which costs most of the time of rendering a conversation."""
    tools = TOOLS if writes else READ_ONLY
    whole = atem.render([atem.Message("user", "")], tools=tools, reasoning_strength=strength)
    ends = [n for n, part in enumerate(whole.segments) if part.text == "<|eot|>"]
    return atem.Prompt(whole.segments[: ends[0] + 1])


@lru_cache
def _system_ids(tokenizer: object, strength: str, *, writes: bool) -> list[int]:
    return system_block(strength, writes=writes).token_ids(tokenizer)


def sample(made: Conversation, tokenizer: atem.Tokenizer) -> Sample:
    """The conversation as atem renders it, with its turns marked."""
    body = atem.render(made.messages, add_generation_prompt=False)
    ends = [n for n, part in enumerate(body.segments) if part.text == "<|eot|>"]
    rest = atem.Prompt(body.segments[ends[0] + 1 :]).token_ids(tokenizer)
    ids = _system_ids(tokenizer, made.strength, writes=made.tools is TOOLS) + rest
    return marked(ids, tokenizer, made.untrained)


def marked(ids: list[int], tokenizer: atem.Tokenizer, untrained: set[int]) -> Sample:
    """``ids`` of a conversation with the assistant's turns marked, but for the ``untrained``."""
    start, end = tokenizer.special_id("<|start|>"), tokenizer.special_id("<|eot|>")
    assistant = tokenizer.encode("assistant")
    learnt, inside, turn = [False] * len(ids), False, -1
    for at, token in enumerate(ids):
        learnt[at] = inside and turn not in untrained
        if token == end:
            inside = False
        elif not inside and ids[at - 1 : at + 1] == [start, *assistant]:
            inside, turn = True, turn + 1
    return Sample(ids, learnt)
