"""Each example runs by itself, in a process of its own, and prints what its text promises."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import atem
from atem.testing.scripted import ScriptedEngine
from tests.session.scripts import call

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
NUMBERED = sorted(path.name for path in FOLDER.glob("[0-9][0-9]_*.py"))
ESCAPE = "\x1b"

# One line, or more, that a reader of the example is promised. Written from the example's text.
PROMISED = {
    "01_parse_a_turn.py": [
        "reasoning: Line 88 is where it fails.",
        "answer:    Let me look at the loader.",
        "call:      read_file {'path': 'src/loader.py', 'first_line': 80}",
        "finish:    tool_calls",
        "cut:       0 calls, ['incomplete']",
    ],
    "02_stream_events.py": [
        "provisional  write_file is being called",
        """run          write_file {'path': 'hello.sh', 'content': '#!/bin/sh\\necho "hello, $1"\\n'}""",
        "end          tool_calls",
        "never run    write_file: incomplete",
        "end          length",
    ],
    "03_token_ids.py": [
        "as text: A turn ends with ",
        "as ids:  A turn ends with <|eot|><|start|>assistant to=user<|message|> or so it looks.",
    ],
    "04_agent_loop.py": [
        '</atem:function_calls><|eot|><|start|>tool read_file<|message|><tool_output name="read_file">',
        "Buy rope. Ask Ana about the tide table.",
        "</tool_output><|eot|><|start|>assistant",
        "Ana.",
    ],
    "05_push_parser.py": ["Running the tests — all of them.", "['run_tests'] tool_calls"],
    "06_two_stages.py": [
        "reasoning: Show the form first.",
        "calls:     ['run_tests']",
        "as one machine says: True",
    ],
    "07_tools_from_functions.py": [
        "depth - Depth of a harbour at low water.",
        "{'port': 'Vigo', 'day': 2, 'unit': 'ft'} -> Vigo, day 2: 13.5 ft",
        "invalid_arguments",
    ],
    "09_run_a_checkpoint.py": [
        "layout:  hf, 251,456 parameters, fits",
        "tokens:  40 length",
        "turn:    length complete=False",
        "again:   True 128 reused",
    ],
    "10_engine_of_your_own.py": ["You said: High water?", "20 checks of the contract passed"],
    "11_session.py": [
        "not run: There is no tool called 'open_file'. This call was not run.",
        """read_file {"path": "notse.txt"} -> FileNotFoundError: there is no 'notse.txt'; there are notes.txt""",
        """read_file {"path": "../secret.txt"} -> PermissionError: '../secret.txt' leads out of the folder; give a path inside it""",
        """read_file {"path": "notes.txt"} -> Ask Ana.""",
        "Ana.",
        "(done, 11 messages)",
    ],
    "08_async.py": [
        """["search {'pattern': 'def load'}"]""",
        """["search {'pattern': 'class Settings'}"]""",
    ],
}


def run(name, *arguments):
    """A finished run of an example against this tree; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8", str(FOLDER / name), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


@pytest.mark.parametrize("name", NUMBERED)
def test_an_example_prints_what_it_promises(name):
    finished = run(name)
    assert finished.returncode == 0, finished.stderr
    assert not finished.stderr
    lines = iter(finished.stdout.splitlines())
    missing = [promised for promised in PROMISED[name] if promised not in lines]
    assert not missing, finished.stdout


@pytest.mark.parametrize("name", NUMBERED)
def test_an_example_is_short_enough_to_read_at_once(name):
    assert len((FOLDER / name).read_text("utf-8").splitlines()) < 60


def test_the_push_parser_example_stops_before_the_model_does():
    last = run("05_push_parser.py").stdout.splitlines()[-1].split()
    assert last[:2] == ["stopped", "after"]
    assert int(last[2]) < int(last[4]) - 20


def test_the_agent_loop_tells_the_model_that_its_tool_does_not_exist():
    said = run("04_agent_loop.py").stdout
    assert '<tool_output name="open_file">' in said
    assert "read_file" in said.partition('<tool_output name="open_file">')[2].partition("</tool")[0]


def demo():
    """The demo's names, without running it."""
    return SimpleNamespace(**runpy.run_path(str(FOLDER / "demo.py")))


def test_the_demo_answers_each_question_through_the_whole_chain():
    finished = run("demo.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert not finished.stderr
    assert ESCAPE not in finished.stdout  # nobody watches
    said = finished.stdout
    asked = said.count("\n  question  ")
    assert f"\n{asked} of {asked} right, in " in said
    for label in "reasoning", "call", "result", "answer":
        assert said.count(f"\n  {label:<10}") >= asked - 1
    assert '\n  call      list_files {"path": "harbour"}\n  result    boat.txt\n' in said


def test_the_answers_that_the_demo_expects_are_in_its_files():
    lines = {
        f"{path.relative_to(FOLDER / 'demo').as_posix()} says: {line}"
        for path in (FOLDER / "demo").rglob("*.txt")
        for line in path.read_text("utf-8").splitlines()
    }
    quoted = [each.answer for each in demo().QUESTIONS if " says: " in each.answer]
    assert len(quoted) == 3
    assert set(quoted) <= lines


def test_each_tool_that_reads_is_in_the_demo():
    used = {tool for each in demo().QUESTIONS for tool in each.tools}
    assert used == {"list_files", "read_file", "search", "calculate"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([" to=user<|message|>At noon.<|eot|>"], "not right no tool, then: At one."),
        ([" to=self<|message|>Hm.<|eot|>"], "answer    none: the model ended its turn"),
        ([call("read_file", path="notes.txt"), " to=user<|message|>At one.<|eot|>"], "not right"),
    ],
)
def test_the_demo_fails_when_an_answer_or_the_calls_before_it_are_not_right(
    capsys, monkeypatch, script, said
):
    shown = demo()
    shown.QUESTIONS[:] = [shown.Question("When?", [], "At one.")]
    monkeypatch.setattr(atem, "load", lambda _: ScriptedEngine(script))
    assert shown.main() == 1
    printed = capsys.readouterr()
    assert said in printed.out
    assert "0 of 1 right" in printed.out
    assert printed.err == "The chain is broken: see what is marked as not right.\n"


def test_the_demo_says_in_one_line_why_the_model_can_not_be_loaded(capsys, monkeypatch):
    def load(_):
        raise atem.CheckpointError("there is no config.json")

    monkeypatch.setattr(atem, "load", load)
    assert demo().main() == 1
    said = capsys.readouterr().err
    assert said == "\nThe chain is broken: CheckpointError: there is no config.json\n"


def test_make_demo_runs_both_scripts():
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\ndemo: ")[2].partition("\n\n")[0]
    assert re.findall(r"examples/\w+\.py", recipe) == [
        "examples/demo.py",
        "examples/parse_turns.py",
    ]


def test_every_turn_is_shown_and_found_as_written():
    finished = run("parse_turns.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert ESCAPE not in finished.stdout
    headings = [line for line in finished.stdout.splitlines()[1:-1] if line[:2].isdigit()]
    turns = len(list((FOLDER / "turns").glob("*.atem")))
    assert len(headings) == turns
    assert finished.stdout.endswith(f"\n{turns} of {turns} as written\n")


def test_a_turn_that_is_named_is_shown_in_full():
    said = run("parse_turns.py", "02").stdout
    assert "\n   call      " in said
    assert said.count("\n   end       ") == 1


def test_a_turn_that_does_not_exist_is_refused():
    finished = run("parse_turns.py", "02", "99")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == "there is no turn 99; they are 01 to 16\n"


def test_a_turn_that_is_not_as_written_is_a_failure(tmp_path):
    (tmp_path / "turns").mkdir()
    names = [FOLDER / "parse_turns.py", *FOLDER.glob("turns/01-*"), FOLDER / "turns" / "tools.json"]
    for path in names:
        copy = tmp_path / path.relative_to(FOLDER)
        copy.write_bytes(path.read_bytes().replace(b'"reasoning": "They', b'"reasoning": "We'))
    finished = run(str(tmp_path / "parse_turns.py"))
    assert finished.returncode == 1
    assert finished.stdout.endswith("\n0 of 1 as written\n")
