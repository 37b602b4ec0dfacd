"""Success on held-out tasks: real greedy generation, through atem's parser and real tools.

Rules: a task counts if every call and the answer are exactly the right ones,
in order; reasoning is not looked at. The tools run in a real folder. Nothing of
training is used but the generator of tasks, with other words, or phrasings, or
both. Prints a table; ``--json`` keeps every failure.

    python evaluate.py --model build/nano --tasks 60
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conversations import STRENGTHS, Draw, tasks_of, turn_text
from families import FAMILIES, FIXED, Call, Task, unwritable

import atem
from atem.agent import calculate, file_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from world import World

    from atem import Engine

KINDS: Final = {
    "held out": Draw(words="held_out", phrasings="held_out"),
    "new phrasing": Draw(words="held_out", phrasings="new"),
    "known": Draw(),
}
"""What is asked: the bar, the figure without a bar, and, for comparison, as in training."""

MAX_TOKENS: Final = 400
MAX_TURNS: Final = 6


@dataclass
class Result:
    """What became of one task."""

    family: str
    strength: str
    request: str
    calls: list[Call] = field(default_factory=list)
    answer: str = ""
    right_calls: list[Call] = field(default_factory=list)
    right_answer: str = ""
    turns: int = 0
    well_formed: int = 0
    complete: bool = False
    """Whether the last turn came to its end."""
    messages: list[atem.Message] = field(default_factory=list)

    @property
    def success(self) -> bool:
        """Whether the calls and the answer are the right ones."""
        right = (self.calls, self.answer) == (self.right_calls, self.right_answer)
        return right and self.complete


def cases(kind: str, family: str, count: int) -> Iterator[tuple[World, Task, str]]:
    """``count`` tasks of a family, each with its folder and strength; the same every time."""
    draw = KINDS[kind]._replace(families=(family,), tasks=(1,))
    for number in range(count):
        seed = random.Random(f"{kind} {family} {number}")  # noqa: S311 - the same every time
        world, (task,) = tasks_of(draw, seed)
        if family == "none" and number % 4 == 0:
            task = unwritable(draw.maker(seed, world))
        yield world, task, STRENGTHS[number % len(STRENGTHS)]


def holds(case: tuple[World, Task, str], words: list[str]) -> bool:
    """Whether one of ``words`` is in a name or a content, or is to be said again."""
    world, task, _ = case
    steps = list(task.steps())
    given = [list(arguments.values()) for turn in steps for _, arguments in turn.calls]
    said = [turn.answer for turn in steps if task.family == "chat"]
    texts = f"{world.files} {given} {set(said) - set(FIXED.values())}"
    return not set(words).isdisjoint(re.findall(r"[^\W\d_]+", texts))


def run(engine: Engine, world: World, task: Task, strength: str) -> Result:
    """One task, from its request to the answer."""
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), world)
        right = list(task.steps())
        result = Result(task.family, strength, task.request)
        result.right_calls = [call for turn in right for call in turn.calls]
        result.right_answer = right[-1].answer
        tools = tools_for(Path(folder), task)
        result.messages = messages = [
            atem.Message("user", task.request),
            *_rejected(task, tools, strength),
        ]
        for _ in range(MAX_TURNS):
            try:
                turn = _ask(engine, messages, tools, strength)
            except atem.ContextOverflow:  # it went on and on
                result.complete = False
                break
            _count(result, turn)
            messages += [*turn.messages, *(_replies(turn, tools) if turn.complete else ())]
            if not turn.complete or not (turn.calls or turn.rejected):
                break
    return result


def tools_for(folder: Path, task: Task) -> atem.ToolSet:
    """The real tools; without the one that writes where none is to fit."""
    return atem.ToolSet([*file_tools(folder, allow_write=task.writable is not False), calculate])


def _write_files(folder: Path, world: World) -> None:
    for path, text in world.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def _rejected(task: Task, tools: atem.ToolSet, strength: str) -> list[atem.Message]:
    """A turn that went wrong and the feedback on it, where the task begins with one."""
    if task.wrong_turn is None:
        return []
    turn = atem.parse(
        turn_text(task.wrong_turn, strength), tools=tools, validate="reject", reason="stop"
    )
    return [*turn.messages, *map(tools.feedback, turn.rejected)]


def _ask(
    engine: Engine, messages: list[atem.Message], tools: atem.ToolSet, strength: str
) -> atem.Turn:
    prompt = atem.render(messages, tools=tools, reasoning_strength=strength)
    request = atem.Request(prompt, atem.GREEDY, max_tokens=MAX_TOKENS)
    steps = engine.generate(request)
    return atem.collect(atem.parse_stream(steps, tools=tools, validate="reject"))


def _count(result: Result, turn: atem.Turn) -> None:
    result.turns += 1
    result.complete = turn.complete
    written = turn.calls or turn.content
    result.well_formed += bool(
        turn.complete and written and not turn.rejected and not turn.problems
    )
    result.calls += [(call.wire_name, call.arguments) for call in turn.calls]
    result.answer = turn.content


def _replies(turn: atem.Turn, tools: atem.ToolSet) -> Iterator[atem.Message]:
    for call in (call for message in turn.messages for call in message.calls):
        yield tools.feedback(call) if isinstance(call, atem.RejectedCall) else _ran(call, tools)


def _ran(call: atem.ToolCall, tools: atem.ToolSet) -> atem.Message:
    try:
        text = tools.get(call.wire_name).call(call.arguments)  # type: ignore[union-attr]
    except Exception as error:  # noqa: BLE001 - as an agent's loop does
        text = f"{type(error).__name__}: {error}"
    return atem.Message("tool", text, name=call.wire_name, call_id=call.id)


def run_all(engine: Engine, asked: Iterator[tuple[World, Task, str]]) -> list[Result]:
    """All tasks, as many at once as the engine takes."""
    with ThreadPoolExecutor(engine.info.max_batch) as pool:
        return list(pool.map(lambda case: run(engine, *case), asked))


def table(results: dict[str, dict[str, list[Result]]]) -> str:
    """Success by family and kind, in percent, as a table in Markdown."""
    kinds = list(results)
    lines = [f"| family | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for family in results[kinds[0]]:
        cells = [_percent(results[kind][family]) for kind in kinds]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    every = [[each for found in results[kind].values() for each in found] for kind in kinds]
    formed = [sum(r.well_formed for r in all_) / sum(r.turns for r in all_) for all_ in every]
    lines.append(f"| all | {' | '.join(map(_percent, every))} |")
    lines.append(
        f"| turns well formed | {' | '.join(f'{100 * share:.1f} %' for share in formed)} |"
    )
    return "\n".join(lines)


def _percent(found: list[Result]) -> str:
    right = sum(each.success for each in found)
    return f"{100 * right / len(found):.1f} % of {len(found)}"


def main() -> None:
    """Evaluate from the command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", default="nano")
    arguments.add_argument("--backend", default="torch")
    arguments.add_argument("--tasks", type=int, default=60, help="of each family")
    arguments.add_argument("--kinds", nargs="+", choices=KINDS, default=["held out"])
    arguments.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    arguments.add_argument("--without", nargs="+", default=[], help="leave out tasks with a word")
    arguments.add_argument("--json", type=Path, help="where to keep the failures")
    given = arguments.parse_args()
    with closing(atem.load(given.model, backend=given.backend)) as engine:
        results = {
            kind: {name: run_all(engine, _asked(given, kind, name)) for name in given.families}
            for kind in given.kinds
        }
    print(table(results))
    if given.json:
        given.json.write_text(json.dumps(_failures(results), indent=1, ensure_ascii=False))


def _asked(given: argparse.Namespace, kind: str, family: str) -> Iterator[tuple[World, Task, str]]:
    for case in cases(kind, family, given.tasks):
        if not holds(case, given.without):
            yield case


def _failures(results: dict[str, dict[str, list[Result]]]) -> dict[str, list[dict[str, Any]]]:
    return {
        kind: [_plain(each) for found in by.values() for each in found if not each.success]
        for kind, by in results.items()
    }


def _plain(result: Result) -> dict[str, Any]:
    return vars(result) | {"messages": [str(message) for message in result.messages]}


if __name__ == "__main__":
    main()
