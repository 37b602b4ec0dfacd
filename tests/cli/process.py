"""The real command as a process, and turns to feed it.

Rules: nothing of ``atem.cli`` is imported here; a test sees what a shell sees.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ATEM = (sys.executable, "-W", "error", "-m", "atem.cli")
OF_THE_SCREEN = (
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "TERM",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONUNBUFFERED",
)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
                "required": ["path"],
            },
        },
    }
]


def call(path="a<b.txt", name="read_file"):
    """A block that calls ``name``, as the model's template writes it."""
    return (
        f'<atem:function_calls>\n<atem:invoke name="{name}">\n'
        f'<atem:parameter name="path">{path}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
    )


THOUGHT = " to=self<|message|>Look first.<|eom|>"
TO_TOOL = "<|start|>assistant to=read_file<|message|>"
TURN = THOUGHT + TO_TOOL + call() + "<|eot|>"


def environment(**extra):
    kept = {key: value for key, value in os.environ.items() if key not in OF_THE_SCREEN}
    return kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"} | extra


def atem(*arguments, data=b"", command=ATEM, cwd=None, **extra):
    """A finished run; ``data`` is its standard input, ``extra`` its environment. All in bytes."""
    given = data.encode() if isinstance(data, str) else data
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment(**extra),
        input=given,
        timeout=50,
    )


def started(*arguments, command=ATEM, **extra):
    """A running command, its three streams open pipes."""
    return subprocess.Popen(
        [*command, *arguments],
        bufsize=0,
        env=environment(**extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def lines(finished):
    """The JSON lines of a run, strictly read."""
    assert finished.stdout.endswith(b"\n")
    return [json.loads(line, parse_constant=not_json) for line in finished.stdout.splitlines()]


def not_json(constant):
    raise AssertionError(f"{constant} is no JSON")


def complaint(finished):
    """The one line on standard error of a run that could do nothing."""
    assert (finished.returncode, finished.stdout) == (2, b"")
    (line,) = finished.stderr.decode().splitlines()
    assert line.startswith("atem: ")
    return line.removeprefix("atem: ")
