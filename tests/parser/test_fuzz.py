"""Ten seconds of the fuzz target (tests/fuzz/target.py), and that the target does its work.

Rules: what a search once found stands in ``FOUND`` as the smallest input that shows it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import atem
from tests.fuzz import target

ROOT = Path(__file__).parent.parent.parent
DEFAULTS = bytes(target.HEAD)

FOUND = {
    "a header that blanks fill to its bound": b"<|eom|><|start|>assistant" + 229 * b" ",
}


def searched(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A search in a process of its own: atheris changes the code of the modules it watches."""
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.target", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this platform"
)
def test_ten_seconds_under_atheris_break_no_law(tmp_path):
    run = searched("--seconds", "10", f"-artifact_prefix={tmp_path}/")
    left = [target.shown(target.smallest(file.read_bytes())) for file in tmp_path.iterdir()]
    assert not left, "\n\n".join(left)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "DONE" in run.stderr


@pytest.mark.timeout(180)
def test_a_search_without_atheris_breaks_no_law():
    run = searched("--plain", "--seconds", "3")
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(run.stdout.split()[0]) > len(target.CASES)


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
@pytest.mark.parametrize("cuts", [0, 1, 7])
def test_what_was_found_once_holds(text, cuts):
    target.check(DEFAULTS[:-1] + bytes([cuts]) + text)


@pytest.mark.parametrize(
    ("case", "seed"),
    list(zip(target.CASES, target.seeds(), strict=True)),
    ids=[case["id"] for case in target.CASES],
)
def test_a_seed_is_the_text_of_its_case_and_holds(case, seed):
    given = target.read(seed)
    assert given.text == case["input"]
    assert given.reason == {"eos": "stop", "length": "length"}[case["stop"]]
    target.check(seed)


def test_zeros_are_the_defaults():
    given = target.read(b"")
    assert (given.text, given.reason) == ("", "stop")
    parser, plain = atem.Parser(**given.options), atem.Parser(tools=given.options["tools"])
    text = "".join(case["input"] for case in target.CASES)
    events = [one.feed(text) + one.close() for one in (parser, plain)]
    assert target.merged(events[0]) == target.merged(events[1])


def test_every_kind_of_token_is_made():
    made = {
        (type(token), getattr(token, "special", None))
        for seed in target.seeds()
        for token in target.read(seed).tokens(whole=False)
    }
    pieces = {(atem.Piece, True), (atem.Piece, False)}
    assert made == {(str, None), (bytes, None), *pieces}


@pytest.mark.parametrize("lost", [atem.CallEnd, atem.TurnEnd, atem.MessageEnd])
def test_a_broken_law_is_noticed(lost):
    text = next(c["input"] for c in target.CASES if c["expect"]["tool_calls"])
    events = list(atem.parse_stream([text], tools=list(target.CASE_TOOLS.values())))
    target.checked(events, text)
    with pytest.raises(AssertionError):
        target.checked([event for event in events if not isinstance(event, lost)], text)


def test_what_is_left_of_a_failure_is_what_it_needs():
    def failure(data: bytes) -> str:
        return "broken" if data[1] == 3 and b"<|" in data[target.HEAD :] else ""

    data = bytes([7, 3, 9]) + bytes(range(target.HEAD - 3)) + b"some <|eom|> text"
    assert target.smallest(data, failure) == b"\0\3" + DEFAULTS[2:] + b"<|"
