"""Help, documentation, versions, and what a bare install says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import atem as library
from atem.cli.model import progress_bar
from tests.cli.process import ROOT, THOUGHT, TO_TOOL, TOOLS, TURN, atem, call, environment

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = ["", "parse", "render", "inspect", "plan", "doctor", "generate"]
HEAVY = {
    "pydantic", "jsonschema", "rich", "numpy", "tokenizers", "openai", "torch", "starlette", "asyncio",
}  # fmt: skip


def helped(command):
    run = atem(*command.split(), "--help", COLUMNS="80")
    assert (run.returncode, run.stderr) == (0, b"")
    return run.stdout.decode()


def section(name):
    """The part of the page under a heading."""
    return re.split(r"^#+ ", PAGE.partition(f"# {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def table(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


# ------------------------------------------------------------- the page says what is


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_shows_the_help_text(command):
    words = " ".join(["atem", *command.split(), "--help"])
    assert f"```console\n$ {words}\n{helped(command)}```\n" in PAGE


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_text_names_the_exit_codes(command):
    codes = helped(command).partition("Exit codes:")[2]
    assert re.findall(r"^ +(\d+) +\w", codes, re.MULTILINE) == ["0", "1", "2", "3", "130", "141"]


def test_the_table_of_lines_has_each_event_and_its_fields_in_order():
    described = {
        kind.strip("`"): re.findall(r"`(\w+)`", fields)
        for kind, fields, _ in table(section("One line an event"))[1:]
    }
    events = library.Event.__args__
    assert described == {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower(): list(event._fields[:-2])
        for event in events
    }


def test_the_page_names_the_fields_of_calls_and_rejected_calls():
    text = TURN.removesuffix("<|eot|>") + "<|eom|>" + TO_TOOL + call(name="rm") + "<|eot|>"
    turn = parsed(text)
    page = section("One line an event")
    (one,), (other,) = turn["calls"], turn["rejected"]
    for name in one:
        assert f"`{name}`" in page.partition("A **call** has")[2]
    for name in other:
        assert f"`{name}`" in page.partition("A **rejected call** has")[2]


def test_the_table_of_the_turn_has_its_fields():
    names = [re.findall(r"`(\w+)`", row[0]) for row in table(section("One line a turn"))]
    assert {name for group in names for name in group} == set(parsed(THOUGHT))


def test_the_table_of_checks_has_those_of_a_checkup_in_order():
    from atem.checkup import _CHECKS

    names = [row[0].strip("`") for row in table(section("atem doctor"))]
    assert names == [name for name, _ in _CHECKS]


def test_the_table_of_labels_has_those_that_are_shown():
    from atem.cli.paint import KINDS

    names = [re.findall(r"`([\w, ]+)`", row[0]) for row in table(section("atem inspect"))]
    assert {name for group in names for name in group} == {kind.label for kind in KINDS.values()}


def parsed(text):
    tools = f"printf '%s' '{json.dumps(TOOLS)}'"
    script = f'exec "$0" -m atem.cli parse --turn --tools <({tools})'
    run = subprocess.run(
        ["bash", "-c", script, sys.executable],
        capture_output=True, check=False, env=environment(), input=text.encode(),
    )  # fmt: skip
    return json.loads(run.stdout)


# ------------------------------------------------------------- start


def test_the_entry_point_is_the_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts["atem"] == "atem.cli:main"
    code = "import sys; from atem.cli import main; sys.exit(main())"
    run = atem("parse", "--turn", command=[sys.executable, "-c", code], data=" to=x<|message")
    assert run.returncode == 0
    assert json.loads(run.stdout)["content"] == " to=x<|message"


def test_the_version_is_the_packages():
    assert atem("--version").stdout.decode() == f"atem {library.__version__}\n"


def test_help_imports_nothing_slow():
    code = "import sys; from atem.cli import main; main(['--help']); print(*sys.modules)"
    loaded = atem(command=[sys.executable, "-c", code]).stdout.decode().splitlines()[-1].split()
    assert "atem.cli.parse" in loaded
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_there_for_three_shells(shell):
    run = atem(_ATEM_COMPLETE=f"{shell}_source")
    assert run.returncode == 0
    assert b"_ATEM_COMPLETE" in run.stdout


def test_completion_knows_commands_and_choices():
    def completed(line):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()))}
        return atem(_ATEM_COMPLETE="bash_complete", **words).stdout.decode().split()

    assert [word.split(",")[1] for word in completed("atem ")] == sorted(COMMANDS[1:])
    assert [word.split(",")[1] for word in completed("atem parse --reason ")] == [
        "stop", "length", "abort",
    ]  # fmt: skip


# ------------------------------------------------------------- without the extra


def bare(folder, *packages):
    """A command in an interpreter that has no packages but these."""
    folder.mkdir()
    for name in packages:
        found = metadata.distribution(name).locate_file(name.replace("-", "_"))
        (folder / Path(found).name).symlink_to(found)
    return {"command": [sys.executable, "-S", "-m", "atem.cli"], "PYTHONPATH": f"{ROOT}:{folder}"}


def test_without_click_the_line_that_installs_it_is_all(tmp_path):
    run = atem("parse", **bare(tmp_path / "packages"))
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.decode() == (
        "atem: the command atem needs an extra: pip install 'muse-atem[agent]'\n"
    )


def test_without_rich_only_colour_is_missing(tmp_path):
    install = bare(tmp_path / "packages", "click", "regex")
    assert atem("parse", data=TURN, **install).returncode == 1
    assert atem("inspect", data=THOUGHT, **install).returncode == 0
    run = atem("inspect", data=THOUGHT, FORCE_COLOR="1", **install)
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.decode() == "atem: colour needs an extra: pip install 'muse-atem[agent]'\n"


def test_without_rich_a_model_loads_without_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setitem(sys.modules, "rich", None)
    with progress_bar() as listener:
        assert listener is None


# ------------------------------------------------------------- python -m atem

MODULE = [sys.executable, "-W", "error", "-m", "atem"]


def test_the_module_reports_versions_in_a_few_lines():
    run = atem(command=MODULE)
    first, second, *rest = run.stdout.decode().splitlines()
    assert first == f"atem {library.__version__}, wire format glimmer-1"
    assert second.startswith("Python 3.")
    assert f"jsonschema {metadata.version('jsonschema')}" in rest[0]
    assert f"rich {metadata.version('rich')}" in rest[1]
    assert [line.partition(":")[0] for line in rest[2:]] == ["extra [engine]", "others"]
    assert "torch " in rest[3]
    assert run.returncode == 0


def test_the_module_reports_what_is_missing(tmp_path):
    run = atem(command=[sys.executable, "-S", "-m", "atem"])
    assert run.returncode == 0
    assert "click missing, rich missing" in run.stdout.decode()


def test_the_module_takes_no_arguments():
    run = atem("parse", command=MODULE)
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr == b"atem: python -m atem takes no arguments; use the command atem\n"
