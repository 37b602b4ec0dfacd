"""The checkpoint that comes with the package: found by its name, and by nothing else."""

from __future__ import annotations

from contextlib import closing

import pytest

import atem
from atem.agent import calculate, file_tools
from atem.errors import CheckpointError
from atem.runtime import embedded
from atem.testing.tiny import tiny_checkpoint

REFERENCE = {"backend": "reference"}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package whose nano is a tiny checkpoint."""
    monkeypatch.setattr(embedded, "_FOLDER", tmp_path)
    return tiny_checkpoint(tmp_path / "nano")


def test_load_plan_and_doctor_find_it_by_its_name(installed):
    with closing(atem.load("nano", **REFERENCE)) as engine:
        assert engine.info.layout == "hf"
    assert atem.plan("nano", **REFERENCE).path == str(installed)
    assert atem.doctor("nano", probe=False, **REFERENCE).path == str(installed)


def test_a_folder_of_that_name_is_reached_by_its_path(installed, tmp_path, monkeypatch):
    other = tmp_path / "elsewhere"
    tiny_checkpoint(other / "nano")
    monkeypatch.chdir(other)
    assert atem.plan("nano", **REFERENCE).path == str(installed)
    assert atem.plan("./nano", **REFERENCE).path == "nano"  # as a path is written


@pytest.mark.parametrize("ask", [atem.load, atem.plan])
def test_an_installation_without_it_says_so(tmp_path, monkeypatch, ask):
    monkeypatch.setattr(embedded, "_FOLDER", tmp_path)
    with pytest.raises(CheckpointError, match="this installation lacks it"):
        ask("nano", **REFERENCE)


def test_doctor_reports_that_it_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "_FOLDER", tmp_path)
    (check,) = atem.doctor("nano", **REFERENCE).checks
    assert (check.name, check.verdict) == ("files", "fail")
    assert "this installation lacks it" in check.found


def test_what_is_shipped_writes_whole_turns_and_the_same_with_both_engines():
    tools = [*file_tools(".", allow_write=True), calculate]
    for question in ("What does notes.txt say about milk?", "What is 12 times 34?"):
        prompt = atem.render([{"role": "user", "content": question}], tools=tools)
        request = atem.Request(prompt, atem.GREEDY, max_tokens=200)
        written = []
        for backend in ("reference", "torch"):
            with closing(atem.load("nano", backend=backend)) as engine:
                written.append(list(engine.generate(request)))
        turn = atem.collect(atem.parse_stream(written[0], tools=tools))
        assert turn.complete
        assert len(turn.calls) == 1
        assert [step.ids for step in written[0]] == [step.ids for step in written[1]]
