"""A script in a file: which turn answers, at what pace, and what is no script."""

from __future__ import annotations

import json
import threading
import time

import pytest

from atem.engine import Request
from atem.errors import EngineError, OptionError
from atem.messages import Message
from atem.parser.api import parse
from atem.render import render
from atem.testing.script_file import script_engine

SCRIPT = """
[[turns]]
last = "^user.*weather"
write = " to=user<|message|>It rains.<|eot|>"

[[turns]]
last = "^tool"
all = "Oslo"
write = " to=user<|message|>Oslo, then.<|eot|>"

[[turns]]
write = " to=user<|message|>Yes.<|eot|>"
"""


@pytest.fixture
def engine(tmp_path):
    def made(text, name="script.toml"):
        path = tmp_path / name
        path.write_text(text)
        return script_engine(path)

    return made


def said(engine, *messages, **options):
    steps = engine.generate(Request(render(list(messages), **options)))
    return parse(steps, tokenizer=engine.tokenizer, channel=options.get("channel")).content


def test_the_first_turn_whose_patterns_are_found_answers(engine):
    scripted = engine(SCRIPT)
    asked = Message("user", "What of the weather in Oslo?")
    result = Message("tool", "wet", name="look", call_id="c")
    assert "It rains." in said(scripted, asked)
    assert "Oslo, then." in said(scripted, asked, Message("assistant", "Wait."), result)
    assert "Yes." in said(scripted, Message("user", "Are you there?"))


def test_json_has_the_same_shape(engine):
    turns = [{"write": " to=user<|message|>From JSON.<|eot|>"}]
    assert "From JSON." in said(
        engine(json.dumps({"turns": turns}), "s.json"), Message("user", "?")
    )


def test_a_channel_that_the_prompt_has_opened_is_not_opened_again(engine):
    assert said(engine(SCRIPT), Message("user", "Hm?"), channel="user") == "Yes."


def test_a_script_without_an_answer_says_so(engine):
    scripted = engine('[[turns]]\nlast = "never"\nwrite = "x"')
    with pytest.raises(EngineError, match="no turn for this conversation"):
        said(scripted, Message("user", "?"))


def test_a_turn_may_fail_in_place_of_its_last_token(engine):
    scripted = engine(
        "[[turns]]\nwrite = ' to=user<|message|>It begins<|eot|>'\nfail = 'No power.'"
    )
    steps = scripted.generate(Request(render([Message("user", "?")])))
    written = []
    with pytest.raises(EngineError, match=r"^No power\.$"):
        written.extend(piece.text for step in steps for piece in step.pieces)
    assert "".join(written) == " to=user<|message|>It begins"


@pytest.mark.parametrize(("text", "taken"), [("", False), ("images = true\n", True)])
def test_images_are_taken_where_the_file_says_so(engine, text, taken):
    assert ("images" in engine(text + SCRIPT).info.features) is taken


def test_steps_come_at_the_pace_of_the_file(engine):
    scripted = engine("tokens_per_second = 100\nfirst_token_seconds = 0.1\n" + SCRIPT)
    began = time.monotonic()
    steps = sum(1 for _ in scripted.generate(Request(render([Message("user", "?")]))))
    assert time.monotonic() - began >= 0.1 + (steps - 1) / 100


def test_closing_wakes_a_thread_that_waits_for_a_step(engine):
    steps = engine("first_token_seconds = 30\n" + SCRIPT).generate(
        Request(render([Message("user", "?")]))
    )
    waiting = threading.Thread(target=lambda: next(steps, None))
    waiting.start()
    steps.close()
    waiting.join(5)
    assert not waiting.is_alive()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no turns"),
        ("turns = []", "no turns"),
        ("turns = [1]", r"turns\[0\] is a int"),
        ("colour = 1", "has colour"),
        ("[[turns]]\nlast = 'x'", r"turns\[0\] needs write, a text"),
        ("[[turns]]\nwrite = 'x'\nwhen = 'y'", r"turns\[0\] has when"),
        ("[[turns]]\nwrite = 'x'\nlast = '('", "pattern that is none"),
        ("tokens_per_second = 'many'\n" + SCRIPT, "it is a number"),
        ("tokens_per_second = -1\n" + SCRIPT, "it is a number"),
        ("tokens_per_second = inf\n" + SCRIPT, "it is a number"),
        ("first_token_seconds = nan\n" + SCRIPT, "it is a number"),
        ("context = nan\n" + SCRIPT, "whole number"),
        ("context = 0\n" + SCRIPT, "whole number"),
        ("context = 99999999999999999999\n" + SCRIPT, "whole number"),
        ("max_batch = 1.5\n" + SCRIPT, "whole number"),
        ("images = 1\n" + SCRIPT, "it is true or false"),
        ("[[turns]", "can't be read as a script"),
    ],
)
def test_what_is_no_script_is_refused_by_its_place(engine, text, message):
    with pytest.raises(OptionError, match=message):
        engine(text)
