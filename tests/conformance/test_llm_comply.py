"""llm-comply, a suite that others wrote, in three formats against the command.

Rules: every case passes, or stands in a table here with its reason. Its cases of
reasoning run only for models of certain names, so the server answers to one.
Source: responses.md 2 (T4).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.process import Process

pytestmark = pytest.mark.slow

MODEL = "gpt-5-claude-4"
SCRIPT = f"scripted:{Path(__file__).parent / 'comply.toml'}"
PASSED = ("passed", None, None)
CASES = {"open-responses": 13, "openai-chat": 9, "anthropic": 9}

THEIR_NAME = "unknown SSE event type: response.reasoning_text"
"""Open Responses calls the events of reasoning ``response.reasoning.*``, OpenAI
``response.reasoning_text.*``; ours are OpenAI's unless ``--event-names`` says otherwise."""

NANO_CAN_NOT = {"image-input": "it sees no images"}


def comply(url, style, *options):
    """The results of one run: id of a case -> its status and what was wrong or doubtful."""
    command = [sys.executable, "-m", "llm_comply.cli", "-u", url, "-k", "any", "-m", MODEL]
    ran = subprocess.run(
        [*command, "--format", style, "--json", "--timeout", "30", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)["results"]
    assert len(found) == CASES[style]
    return {
        case["id"]: (case["status"], case.get("errors"), case.get("warnings")) for case in found
    }


@pytest.fixture(scope="module")
def served():
    with Process("--engine", SCRIPT, "--store", "memory", "--model-name", "*") as process:
        yield process.url


@pytest.fixture(scope="module")
def nano():
    with Process("--engine", "nano", "--store", "memory", "--model-name", "*") as process:
        yield process.url


@pytest.mark.parametrize("style", CASES)
def test_every_case_passes(served, style):
    found = comply(served, style, "--ignore", THEIR_NAME)
    assert {case: result for case, result in found.items() if result != PASSED} == {}


def test_by_the_names_of_open_responses_nothing_is_exempt():
    options = ("--store", "memory", "--model-name", "*", "--event-names", "openresponses")
    with Process("--engine", SCRIPT, *options) as process:
        found = comply(process.url, "open-responses")
    assert {case: result for case, result in found.items() if result != PASSED} == {}


@pytest.mark.parametrize("style", CASES)
def test_a_real_model_passes_what_it_can_do(nano, style):
    """A tool that it never saw is called too, because it is kept to the form of a call."""
    found = comply(nano, style, "--ignore", THEIR_NAME)
    plain = {case.removeprefix("chat-").removeprefix("anth-"): found[case] for case in found}
    others = {case: result for case, result in plain.items() if result[0] != "passed"}
    assert set(others) == set(NANO_CAN_NOT), others
