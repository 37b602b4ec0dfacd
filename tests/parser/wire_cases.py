"""The wire cases, and how an answer is compared with one (tests/cases/README.md).

Rules: no expectation lives here, and nothing here knows a reader.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parent.parent / "cases" / "wire.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
BY_ID = {case["id"]: case for case in CASES}
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


def reason(case: dict[str, Any]) -> str:
    """What ``stop`` of a case is called in the API."""
    return {"eos": "stop", "length": "length"}[case["stop"]]


def assert_answer(
    case: dict[str, Any], *, reasoning: Any, content: Any, calls: Any, rejected: Any, complete: Any
) -> None:
    """Assert that a turn is as the case says; ``calls`` are pairs of name and arguments."""
    found = {
        "reasoning": reasoning,
        "content": content,
        "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "rejected": rejected,
        "complete": complete,
    }
    wanted = {key: value for key, value in case["expect"].items() if value is not None}
    if wanted.get("rejected") == "some":
        assert rejected
        del wanted["rejected"]
    # As JSON text, so that 1, 1.0 and true differ and the order of arguments counts.
    assert json.dumps({key: found[key] for key in wanted}) == json.dumps(wanted)
