"""How a turn is compared with what docs/format.md and examples/turns say of it.

Rules: no expectation lives here, and nothing here knows the parser's insides.
JSON texts are compared: that tells 1, 1.0 and true apart and keeps the order of
arguments.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {"reasoning": "", "content": "", "calls": [], "rejected": [], "complete": True}


def check(turn: Any, written: dict[str, Any]) -> None:
    """Assert that ``turn`` is as ``written``; a field left out has its default, or isn't compared."""
    wanted = DEFAULTS | written
    found = {key: READERS[key](turn) for key in wanted}
    found["calls"] = [
        {key: call[key] for key in call if key != "errors" or key in asked}
        for call, asked in zip_longest(found["calls"], wanted["calls"], fillvalue={})
    ]
    assert pretty(found) == pretty(wanted)


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def without_last_newline(text: str) -> str:
    """A turn out of its file or fenced block, which ends with a line break of its own."""
    return text.removesuffix("\n")


def _calls(turn: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": call.name,
            "arguments": call.arguments,
            "errors": sorted(violation.path for violation in call.errors),
        }
        for call in turn.calls
    ]


READERS = {
    "reasoning": lambda turn: turn.reasoning,
    "content": lambda turn: turn.content,
    "calls": _calls,
    "rejected": lambda turn: [rejected.reason for rejected in turn.rejected],
    "complete": lambda turn: turn.complete,
    "finish_reason": lambda turn: turn.finish_reason,
    "problems": lambda turn: [problem.code for problem in turn.problems],
}
