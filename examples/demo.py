"""Questions about the files in examples/demo, answered by the whole chain: `make demo`.

Each question is rendered into a prompt; nano, the model that comes with atem, writes a turn;
the parser reads its calls; the tools run on the real files; and the model is asked again with
their results, until it answers. `atem.Session` is that loop, `ask` below all that it takes.

Exits with 1 if an answer is wrong, or calls other than the right ones were run.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import atem
from atem.agent import calculate, file_tools
from atem.session import Feedback, TaskEnd, ToolEnd, ToolStart

FOLDER = Path(__file__).parent / "demo"
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
STYLES = {"question": "1", "reasoning": "2", "call": "36", "answer": "32", "not run": "31"}
INTRO = """\
nano answers questions about the files in {folder}.
It has 1.5 million parameters: a demonstration of the format, not an assistant. It knows five
tools and the kind of sentences below, and little else; other questions it may answer wrongly.
"""


class Question(NamedTuple):
    """What is asked, and what must come out: the tools that run, in order, and the answer."""

    text: str
    tools: list[str]
    answer: str


QUESTIONS = [
    Question(
        "Which files are here?",
        ["list_files"],
        "The files in this folder are:\nharbour/\nnotes.txt",
    ),
    Question(
        "What does notes.txt say about lunch?",
        ["read_file"],
        "notes.txt says: lunch: tomato soup",
    ),
    Question(
        "Find the file about ferry in harbour and tell me its captain.",
        ["list_files", "read_file"],
        "harbour/ferry.txt says: captain: Amber Stone",
    ),
    Question(
        "Which file mentions silver?",
        ["search"],
        "The first hit is in notes.txt.",
    ),
    Question(
        "What is 12 * 34, and what is 56 + 78?",
        ["calculate", "calculate"],
        "12 * 34 = 408\n56 + 78 = 134",
    ),
    # The name is misspelt: the tool's error says what there is, and the model tries again.
    Question(
        "What does notse.txt say about meeting?",
        ["read_file", "read_file"],
        "notes.txt says: meeting: monday morning",
    ),
    # There is no tool for this.
    Question(
        "Delete notes.txt",
        [],
        "None of my tools can do that.",
    ),
]


def ask(engine: atem.Engine, text: str) -> tuple[list[str], str]:
    """Ask one question and show all that happens; the tools that ran, and the answer."""
    session = atem.Session(
        engine,
        tools=[*file_tools(FOLDER), calculate],
        policy=atem.allow_all,  # these tools can only read, and only in the folder
        reasoning_strength="high",
        sampling=atem.GREEDY,
    )
    ran, reasoning, answer = [], "", ""
    for event in session.send(text):
        match event:
            case atem.ReasoningDelta(text=piece):
                reasoning += piece
            case atem.ContentDelta(text=piece):
                answer += piece
            case atem.MessageEnd() if reasoning:
                show("reasoning", reasoning)
                reasoning = ""
            case ToolStart(call=call):
                show("call", f"{call.wire_name} {call.arguments_json}")
                ran.append(call.wire_name)
            case ToolEnd(text=result):
                show("result", result.rstrip("\n"))
            case Feedback(text=why):
                show("not run", why)
            case TaskEnd(reason=reason, text=why):
                show("answer", answer if reason == "done" else f"none: {why}")
    return ran, answer


def show(label: str, text: str) -> None:
    """Print ``text`` behind a label, its later lines under the first."""
    line = f"  {label:<10}" + text.replace("\n", "\n" + " " * 12)
    style = STYLES.get(label)
    print(f"\x1b[{style}m{line}\x1b[0m" if COLOUR and style else line, flush=True)


def right(engine: atem.Engine, question: Question) -> bool:
    """Ask, and whether what came out is what must."""
    print()
    show("question", question.text)
    ran, answer = ask(engine, question.text)
    if (ran, answer) == (question.tools, question.answer):
        return True
    show("not right", f"{', '.join(question.tools) or 'no tool'}, then: {question.answer}")
    return False


def main() -> int:
    """Ask all questions; 0 if all is right."""
    print(INTRO.format(folder=os.path.relpath(FOLDER)), end="", flush=True)
    began = time.perf_counter()
    try:
        with closing(atem.load("nano")) as engine:
            results = [right(engine, question) for question in QUESTIONS]
    except (atem.AtemError, OSError) as error:
        print(f"\nThe chain is broken: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    took = time.perf_counter() - began
    print(f"\n{sum(results)} of {len(results)} right, in {took:.1f} s")
    if not all(results):
        print("The chain is broken: see what is marked as not right.", file=sys.stderr)
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
