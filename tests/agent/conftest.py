"""A folder to work in, with something outside that must never be seen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import atem
from atem.agent import calculate, file_tools

SECRET = "the secret"


@pytest.fixture
def place(tmp_path):
    """``root`` with files, ``outside`` beside it, and ``call(name, **arguments)``."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "docs" / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (root / "notes.txt").write_text("Ask Ana.\nthen Ben\n")
    (root / "plan.txt").write_text("Ask nobody.\n")
    (root / "docs" / "a.md").write_text("é: Ana\r\n")
    tools = atem.ToolSet([*file_tools(root, allow_write=True), calculate])

    def call(name, **arguments):
        return tools.get(name).call(arguments)

    return SimpleNamespace(root=root, outside=outside, tools=tools, call=call)
