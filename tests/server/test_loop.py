"""What may take long is never done on the event loop, however a turn ends."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from atem.engine import Step
from atem.errors import EngineError
from atem.responses import ask as asking
from atem.responses.text_format import TextFormat
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    BODY,
    HELLO,
    LONG,
    MODEL,
    block,
    call,
    invoke,
    raw_request,
    running,
    wait,
)

MESSAGE = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "name": "known", "parameters": {"type": "object"}}
SEARCH = [{"type": "tool_search", "execution": "server"}, {**TOOL, "defer_loading": True}]
JSON = {"text": {"format": {"type": "json_object"}}}
SAID = [Step(piece=" to=user<|message|>One two "), Step(piece="three."), Step(finish="stop")]


class Heard:
    """A tokenizer that is heard when it encodes."""

    def __init__(self, tokenizer, note):
        self._tokenizer = tokenizer
        self._note = note

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def encode(self, text, *arguments):
        self._note("encode")
        return self._tokenizer.encode(text, *arguments)


class Slow(ScriptedEngine):
    """Whatever it does may take long: it notes who has to wait. Stops and formats are not its own."""

    def __init__(self, turns, note):
        super().__init__(turns)
        self.tokenizer = Heard(self.tokenizer, note)
        self.info = replace(self.info, features=self.info.features - {"stop", "grammar"})
        self._note = note

    def generate(self, request):
        self._note("generate")
        return _Steps(super().generate(request), self._note)


class _Steps:
    def __init__(self, steps, note):
        self._steps = steps
        self._note = note

    def __iter__(self):
        return self

    def __next__(self):
        self._note("next")
        return next(self._steps)

    def close(self):
        self._note("close")


def broken():
    yield from SAID[:2]
    raise EngineError("It broke.")


class Breaking(Slow):
    """Raises in the midst of a turn."""

    def generate(self, request):
        super().generate(request)
        return _Steps(broken(), self._note)


CASES = {
    "a stop": ([HELLO], {}, {}),
    "a stop string": ([SAID], {"stop": ["two"]}, {}),
    "one call at a time": (
        [block(invoke("known"), invoke("known"), to="known") + "<|eot|>"],
        {"tools": [TOOL], "parallel_tool_calls": False},
        {},
    ),
    "the prompt alone": ([HELLO], {"prompt_cache_options": {"prewarm": True}}, {}),
    "a search": ([call("tool_search", query="known"), HELLO], {"tools": SEARCH}, {}),
    "a call to be written again": (
        [call("unknown"), HELLO],
        {"tools": [TOOL]},
        {"on_rejected": "retry"},
    ),
    "a format to be written again": ([HELLO, " to=user<|message|>{}<|eot|>"], JSON, {}),
    "text without ids": ([SAID], {}, {}),
}


@pytest.fixture
def noted(monkeypatch):
    """What was done, and by which threads."""
    notes = []

    def note(what):
        notes.append((what, threading.get_ident()))

    def heard(what, function):
        def work(*arguments, **options):
            note(what)
            return function(*arguments, **options)

        return work

    monkeypatch.setattr(asking, "render", heard("render", asking.render))
    monkeypatch.setattr(TextFormat, "faults", heard("validate", TextFormat.faults))
    notes.append(note)
    return notes


def by_the_loop(server, notes):
    async def thread():
        return threading.get_ident()

    loop = server.call(thread)
    return [what for what, by in notes if by == loop]


@pytest.mark.parametrize("case", CASES)
def test_nothing_that_may_take_long_is_done_on_the_loop(case, noted):
    turns, fields, settings = CASES[case]
    note = noted.pop()
    with running(Slow(turns, note), **settings) as server:
        if "stop" in fields:
            answer = server.http.post(
                "/v1/chat/completions", json={"model": MODEL, "messages": MESSAGE, **fields}
            )
            assert answer.json()["choices"][0]["message"]["content"] == "One "
        else:
            assert server.create(**fields).json()["status"] == "completed"
        assert not server.service.replies or wait(lambda: not server.service.replies)
        assert len(server.engine.requests) == len(turns)
        assert {"render", "encode", "generate", "next"} <= {what for what, _ in noted}
        assert by_the_loop(server, noted) == []


def test_an_engine_that_breaks_off_is_closed_and_counted_beside_the_loop(noted):
    note = noted.pop()
    with running(Breaking([SAID], note)) as server:
        assert server.create().status_code == 500
        assert {"encode", "close"} <= {what for what, _ in noted}
        assert by_the_loop(server, noted) == []


def test_a_client_that_leaves_has_its_engine_closed_beside_the_loop(noted):
    note = noted.pop()
    with running(Slow([LONG], note)) as server:
        raw_request(server, BODY).close()
        assert wait(lambda: not server.service.replies)
        assert "close" in {what for what, _ in noted}
        assert by_the_loop(server, noted) == []
