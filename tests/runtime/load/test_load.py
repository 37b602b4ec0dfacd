"""From a path to an engine: which one, what it is told, and what is refused before it loads."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from importlib.metadata import EntryPoint

import pytest

import atem
from atem.engine import GREEDY
from atem.runtime import backends as module
from atem.testing.tiny import tiny_checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_checkpoint(tmp_path_factory.mktemp("tiny"))


def answer(engine):
    steps = engine.generate(atem.Request([0, 5, 6, 7], GREEDY, max_tokens=8))
    return [number for step in steps for number in step.ids]


def test_torch_is_taken_where_it_is_installed(folder):
    with closing(atem.load(folder)) as engine:
        assert engine.info.backend == "torch"


def test_the_reference_is_taken_where_torch_is_not_installed(folder, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with closing(atem.load(folder)) as engine:
        assert engine.info.backend == "reference"


def test_both_engines_answer_alike(folder):
    with closing(atem.load(folder, backend="reference")) as one, closing(atem.load(folder)) as two:
        assert answer(one) == answer(two)


def test_the_plan_is_told_before_anything_is_read(folder):
    heard = []
    with closing(atem.load(folder, backend="reference", progress=heard.append)):
        pass
    assert heard[0].stage == "plan"
    assert heard[0].total > 1_000_000
    assert [event.stage for event in heard[1:]] == ["read"] * (len(heard) - 1)
    assert heard[-1].done == heard[-1].total


def test_what_cannot_fit_is_refused_before_anything_is_read(folder, monkeypatch):
    heard = []
    monkeypatch.setattr("atem.runtime.backends.available_memory", lambda: 100_000)
    with pytest.raises(atem.OutOfMemory, match=r"GiB are needed.*check_memory=False"):
        atem.load(folder, backend="reference", progress=heard.append)
    assert [event.stage for event in heard] == ["plan"]


def test_what_cannot_fit_is_loaded_all_the_same_if_asked(folder, monkeypatch):
    monkeypatch.setattr("atem.runtime.backends.available_memory", lambda: 100_000)
    with closing(atem.load(folder, backend="reference", check_memory=False)) as engine:
        assert len(answer(engine)) == 8


@pytest.mark.parametrize(
    ("source", "options", "text"),
    [
        ("x", {"backend": "cudaa"}, "none of auto, reference, torch"),
        ("x", {"backend": "remote"}, "needs an http"),
        ("", {}, "the path is empty"),
        ("http://127.0.0.1:1", {"backend": "torch"}, "can't serve an address"),
        ("HTTP://127.0.0.1:1", {"backend": "torch"}, "can't serve an address"),
        ("http://127.0.0.1:1", {"rope_style": "half"}, "checkpoint on disk"),
        ("x", {"backend": "reference", "device": "cpu"}, "device: no option of ReferenceEngine"),
        ("x", {"max_bach": 3, "backend": "torch"}, "max_bach: no option"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused(source, options, text):
    with pytest.raises(atem.OptionError, match=text):
        atem.load(source, **options)


def test_an_option_of_torch_without_torch_names_what_installs_it(folder, monkeypatch):
    monkeypatch.setattr("atem.runtime.backends.find_spec", lambda name: None)
    with pytest.raises(atem.OptionError, match=r"no option of Reference.*muse-atem\[cuda\]"):
        atem.load(folder, device="cuda")


def test_a_missing_extra_is_named_with_its_install_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [each for each in sys.modules if each.startswith("atem.runtime.cuda")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(atem.MissingExtra, match=r"pip install 'muse-atem\[cuda\]'"):
        atem.load(folder, backend="torch")


def test_an_engine_of_another_package_is_found_by_its_name(folder, monkeypatch):
    point = EntryPoint("mine", "tests.runtime.load.plugged:Engine", "atem.engines")
    monkeypatch.setattr(module, "entry_points", lambda group: [point])
    assert atem.load(folder, backend="mine", colour="red").colour == "red"
    with pytest.raises(atem.OptionError, match="size: no option of Engine; it has colour"):
        atem.load(folder, backend="mine", size=3)


def test_an_engine_that_fails_closes_the_checkpoint(folder, monkeypatch):
    point = EntryPoint("mine", "tests.runtime.load.plugged:Broken", "atem.engines")
    monkeypatch.setattr(module, "entry_points", lambda group: [point])
    with pytest.raises(RuntimeError, match="broken") as caught:
        atem.load(folder, backend="mine")
    with pytest.raises(atem.CheckpointError):
        caught.value.checkpoint.read("embed")


@pytest.mark.parametrize("backend", ["reference", "torch"])
def test_an_engine_says_what_its_checkpoint_recommends(tmp_path, backend):
    folder = tiny_checkpoint(tmp_path)
    recommended = {"temperature": 0.6, "top_k": 20, "top_p": 0.8, "eos_token_id": 271}
    (folder / "generation_config.json").write_text(json.dumps(recommended))
    with closing(atem.load(folder, backend=backend)) as engine:
        assert engine.info.sampling == atem.Sampling(temperature=0.6, top_k=20, top_p=0.8)


@pytest.mark.parametrize("backend", ["reference", "torch"])
@pytest.mark.parametrize("wrong", ["hi", None, [1, 2]])
def test_what_is_no_request_is_refused_by_the_call(folder, backend, wrong):
    with (
        closing(atem.load(folder, backend=backend)) as engine,
        pytest.raises(atem.OptionError, match=r"atem\.Request\(prompt\)"),
    ):
        engine.generate(wrong)
