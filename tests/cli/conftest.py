"""Files that the command line's tests share."""

from __future__ import annotations

import json

import pytest

from tests.cli.process import TOOLS


@pytest.fixture
def tools(tmp_path):
    """The path of a tools file."""
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(path)
