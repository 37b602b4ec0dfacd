"""The programs beside this file run: what is checked for its types is also true.

`make types` checks the types, with mypy and with pyright, as a user's checkers would.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROGRAMS = sorted(
    path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_of_a_user_runs(program: Path) -> None:
    runpy.run_path(str(program))


def test_no_program_needs_a_cast_or_an_ignore() -> None:
    texts = [path.read_text("utf-8") for path in PROGRAMS]
    assert not [text for text in texts if "type: ignore" in text or "cast(" in text]
    assert len(texts) == 5
