"""What the server's page tells a newcomer to try: the script, the tool turn, the settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from atem.server.auth import keys_of
from atem.server.settings import read_settings
from atem.testing.script_file import script_engine
from tests.golden.expectation import ROOT
from tests.server.running import running

FOLDER = ROOT / "examples" / "serve"
PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")


def test_the_tool_turn_of_the_example_is_answered_by_its_script():
    with running(script_engine(FOLDER / "script.toml")) as served:
        done = subprocess.run(
            [sys.executable, FOLDER / "tool_turn.py"],
            env={**os.environ, "OPENAI_BASE_URL": served.url},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ['call tide_at {"port": "Vigo"}', "High water in Vigo is at 15:02."],
    )


def test_the_settings_that_the_page_shows_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(r"^```toml\n((?s:.*?))^```$", PAGE, re.MULTILINE)
    (tmp_path / "atem.toml").write_text(shown)
    (tmp_path / "keys").write_text(f"# two\nsesame-open-123\nsha256:{'0' * 64}\n")
    settings = read_settings({}, {}, "atem.toml")
    assert settings.model_name == ("muse", "gpt-*")
    assert keys_of(settings)
