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

    from phrasing import Phrasings
    from words import Split

STRENGTHS: Final = ("low", "medium", "high", "xhigh")
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
        if (turn := task.wrong_turn) is None:
            return
        self.untrained.add(self.turns)
        parsed = self._write(turn)
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


class Stage(NamedTuple):
    """What a stage of training draws."""

    weights: dict[str, float]
    """How often each family comes, beside the others."""
    more: bool = True
    """Whether the bodies of phrasing.MORE are asked with."""
    spliced: bool = True
    """Whether words are also spliced from parts of others."""
    pieces: bool = False
    """Whether words are also put together from the tokenizer's pieces."""
    requests: bool = False
    """Whether words of requests are names and contents too, of whichever split."""


_WEIGHTS: Final = {
    "list": (0.7, 0.9, 1.1, 0.9), "read": (1.4, 1.2, 1.2, 1.6), "search": (1.1, 0.9, 1.2, 1.2),
    "write": (0.8, 1.3, 1.2, 1.2), "calculate": (0.6, 1.3, 0.7, 0.7), "chain": (1.6, 1.3, 1.8, 2.0),
    "parallel": (1.6, 2.4, 2.8, 3.0), "error": (1.5, 2.0, 1.8, 2.2),
    "rejected": (0.8, 0.8, 1.0, 0.9), "none": (0.5, 0.7, 0.7, 0.8), "chat": (0.5, 0.9, 1.1, 0.9),
}  # fmt: skip
"""Each family's in the four stages."""

_FIRST, _SECOND, _THIRD, _FOURTH = (
    dict(zip(_WEIGHTS, each, strict=True)) for each in zip(*_WEIGHTS.values(), strict=True)
)

STAGES: Final = {
    1: Stage(_FIRST, more=False, spliced=False),
    2: Stage(_SECOND),
    3: Stage(_THIRD, pieces=True),
    4: Stage(_FOURTH, pieces=True, requests=True),
}
"""The stages of training, in their order."""

PLAIN: Final = Stage(_THIRD, spliced=False)
"""Words as they are, in all phrasings: what is measured, and what the drafter learns from."""


class Draw(NamedTuple):
    """How conversations are drawn: words and phrasings of which split, families, how many tasks."""

    words: Split = "train"
    phrasings: Phrasings = "train"
    families: tuple[str, ...] = tuple(FAMILIES)
    tasks: tuple[int, ...] = (1, 1, 1, 2, 2, 3, 4, 5)
    stage: Stage = PLAIN
    pieces: tuple[str, ...] = ()
    """The tokenizer's, for a stage that takes them."""

    def maker(self, rng: random.Random, world: World) -> Maker:
        """What the families are given."""
        pieces = self.pieces if self.stage.pieces else ()
        requests = self.stage.requests and self.words == "train"
        words = Words(rng, self.words, self.stage.spliced, pieces, requests)
        return Maker(words, world, self.phrasings, self.stage.more)


def tasks_of(draw: Draw, rng: random.Random) -> tuple[World, list[Task]]:
    """A folder and the tasks in it."""
    world = World()
    maker = draw.maker(rng, world)
    weights = [draw.stage.weights[name] for name in draw.families]
    names = rng.choices(draw.families, weights, k=rng.choice(draw.tasks))
    return world, [FAMILIES[name](maker) for name in names]


def conversation(draw: Draw, rng: random.Random) -> Conversation:
    """A whole conversation, drawn again where its tasks clash."""
    while True:
        world, tasks = tasks_of(draw, rng)
        made = Conversation(rng.choice(STRENGTHS), _tools(rng, tasks), world)
        if made.tools is READ_ONLY and rng.random() < 0.4:
            tasks.append(unwritable(draw.maker(rng, world)))
        try:
            for task in tasks:
                play(made, task)
        except Clash:
            continue
        return made


def _tools(rng: random.Random, tasks: Sequence[Task]) -> atem.ToolSet:
    writes = any(task.writable for task in tasks)
    return READ_ONLY if not writes and rng.random() < READ_ONLY_SHARE else TOOLS


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
