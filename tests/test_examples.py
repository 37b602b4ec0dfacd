"""Each example runs by itself, in a process of its own, and prints what its text promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    "10_engine_of_your_own.py": ["You said: High water?", "19 checks of the contract passed"],
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


def run(name):
    """A finished run of an example against this tree; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8", str(FOLDER / name)],
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


def test_the_demo_shows_every_turn_and_finds_each_as_written():
    finished = run("demo.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    headings = [line for line in finished.stdout.splitlines()[:-1] if line[:2].isdigit()]
    turns = len(list((FOLDER / "turns").glob("*.atem")))
    assert len(headings) == turns
    assert finished.stdout.endswith(f"\n{turns} of {turns} as written\n")


def test_the_demo_is_plain_text_when_nobody_watches():
    assert ESCAPE not in run("demo.py").stdout


def test_the_demo_fails_when_a_turn_is_not_as_written(tmp_path):
    (tmp_path / "turns").mkdir()
    for path in [FOLDER / "demo.py", *FOLDER.glob("turns/01-*"), FOLDER / "turns" / "tools.json"]:
        copy = tmp_path / path.relative_to(FOLDER)
        copy.write_bytes(path.read_bytes().replace(b'"reasoning": "They', b'"reasoning": "We'))
    finished = run(str(tmp_path / "demo.py"))
    assert finished.returncode == 1
    assert finished.stdout.endswith("\n0 of 1 as written\n")
