"""The scripted engine: what it is told, by the rules of a real one."""

from __future__ import annotations

from contextlib import closing

import pytest

import atem
from atem import wire
from atem.engine import GREEDY, Request, Sampling, Step
from atem.errors import ContextOverflow, EngineClosed, EngineError, OptionError, Unsupported
from atem.grammar import Form, Grammar
from atem.testing.driving import decoded, ids_of, prompt, run
from atem.testing.scripted import ScriptedEngine, wire_ids
from atem.testing.tiny import tiny_tokenizer

HELLO = " to=user<|message|>Hello there<|eot|>"
CALL = (
    ' to=tool<|message|><atem:function_calls><atem:invoke name="tool"></atem:invoke>'
    "</atem:function_calls><|eot|>"
)


def ask(engine, **changes):
    return Request(prompt(engine), **{"sampling": GREEDY} | changes)


def tool() -> None:
    """A tool."""


def text_of(engine, steps):
    return decoded(engine, ids_of(steps))


def test_turns_come_in_order_token_by_token():
    engine = ScriptedEngine([HELLO, CALL])
    first, second = (run(engine, ask(engine)) for _ in range(2))
    assert (text_of(engine, first), text_of(engine, second)) == (HELLO, CALL)
    assert {len(step.ids) for step in first + second} == {1}
    assert [step.finish for step in first] == [None] * (len(first) - 1) + ["stop"]


def test_a_parser_reads_the_turns():
    engine = ScriptedEngine([HELLO, CALL])
    assert atem.collect(atem.parse_stream(engine.generate(ask(engine)))).content == "Hello there"
    turn = atem.collect(atem.parse_stream(engine.generate(ask(engine)), tools=[tool]))
    assert [call.name for call in turn.calls] == ["tool"]


def test_control_tokens_of_a_text_are_special_and_its_tags_are_not():
    engine = ScriptedEngine([CALL])
    pieces = [piece for step in engine.generate(ask(engine)) for piece in step.piece]
    assert [piece.text for piece in pieces if piece.special] == ["<|message|>", "<|eot|>"]
    assert "".join(piece.text for piece in pieces) == CALL


def test_ids_may_spell_what_no_text_can():
    engine = ScriptedEngine([[60, 124, *wire_ids("<|eot|>", tiny_tokenizer())]])
    assert ids_of(run(engine, ask(engine)))[:2] == [60, 124]


def test_a_callable_sees_the_request():
    engine = ScriptedEngine(lambda request: f"{len(request.prompt)}<|eot|>")
    request = ask(engine)
    assert text_of(engine, run(engine, request)) == f"{len(request.prompt)}<|eot|>"


def test_requests_are_recorded_when_they_are_made():
    engine = ScriptedEngine([HELLO, HELLO])
    requests = [ask(engine), ask(engine, max_tokens=3)]
    for request in requests:
        engine.generate(request)
    assert engine.requests == requests


def test_a_turn_without_an_end_is_cut():
    engine = ScriptedEngine([" to=user<|message|>Hel<|eom|>"])
    steps = run(engine, ask(engine))
    assert (steps[-1].finish, text_of(engine, steps)[-10:]) == ("length", "Hel<|eom|>")


def test_nothing_comes_after_a_stop_token():
    engine = ScriptedEngine(["a<|end_of_text|>b<|eot|>"])
    assert text_of(engine, run(engine, ask(engine))) == "a<|end_of_text|>"


def test_limits_and_stop_strings_hold():
    engine = ScriptedEngine(lambda _: HELLO)
    assert len(run(engine, ask(engine, max_tokens=2))) == 2
    pieces = [piece for step in run(engine, ask(engine, stop=("o th",))) for piece in step.piece]
    assert "".join(piece.text for piece in pieces) == " to=user<|message|>Hell"


def test_no_sampling_moves_it_from_its_script():
    engine = ScriptedEngine(lambda _: HELLO)
    wild = Sampling(
        temperature=100.0, top_k=0, top_p=1.0, repetition_penalty=10.0, presence_penalty=2.0,
        frequency_penalty=2.0, logprobs=1,
    )  # fmt: skip
    steps = run(engine, ask(engine, sampling=wild))
    assert text_of(engine, steps) == HELLO
    assert {step.logprobs for step in steps} == {(0.0,)}


def test_a_budget_for_reasoning_closes_it_and_the_script_goes_on():
    engine = ScriptedEngine([" to=self<|message|>abcdef<|eot|>"])
    text = text_of(engine, run(engine, ask(engine, reasoning_budget=2)))
    assert text == " to=self<|message|>ab<|eom|><|start|>assistant to=user<|message|>cdef<|eot|>"


def test_steps_are_given_as_they_are():
    steps = [Step(piece="a"), Step(ids=(1, 2)), Step(finish="abort")]
    engine = ScriptedEngine([steps])
    given = run(engine, ask(engine))
    assert [id(step) for step in given] == [id(step) for step in steps]


@pytest.mark.parametrize(
    "turn", ["", [], [Step(ids=(1,))], [Step(finish="stop"), Step(ids=(1,), finish="stop")]]
)
def test_a_turn_without_a_token_or_one_end_is_refused_by_the_call(turn):
    engine = ScriptedEngine([turn])
    with pytest.raises(OptionError, match="scripted turn"):
        engine.generate(ask(engine))


@pytest.mark.parametrize(
    "turn", [[-1], [1 << 20], [1.5], [1, "a"], 5, None, [Step(piece="a"), 1], [[1]]]
)
def test_a_turn_of_anything_else_is_refused_by_the_call(turn):
    engine = ScriptedEngine([turn])
    with pytest.raises(OptionError, match="text, or ids below 1048576, or steps"):
        engine.generate(ask(engine))


def test_one_text_is_no_list_of_turns():
    with pytest.raises(OptionError, match="pass a list of turns"):
        ScriptedEngine(HELLO)


def test_a_prompt_of_another_vocabulary_is_refused_by_the_call():
    with pytest.raises(OptionError, match="1000000000000"):
        ScriptedEngine([HELLO]).generate(Request([10**12]))


def test_a_script_that_is_over_says_so_by_the_call():
    engine = ScriptedEngine([])
    with pytest.raises(EngineError, match="script is over"):
        engine.generate(ask(engine))


def test_what_no_script_honours_is_refused_and_costs_no_turn():
    engine = ScriptedEngine([HELLO])
    with pytest.raises(Unsupported, match="grammar"):
        engine.generate(ask(engine, grammar=Grammar(Form("regex", "x"))))
    assert text_of(engine, run(engine, ask(engine))) == HELLO
    assert len(engine.requests) == 1


def test_its_context_overflows_by_the_call():
    engine = ScriptedEngine([HELLO], context=3)
    with pytest.raises(ContextOverflow):
        engine.generate(ask(engine))


def test_nothing_is_read_ahead_of_the_consumer():
    asked = []

    class Watched(list):
        def __iter__(self):
            for number in super().__iter__():
                asked.append(number)
                yield number

    engine = ScriptedEngine([Watched(wire_ids(HELLO, tiny_tokenizer()))])
    steps = engine.generate(ask(engine))
    asked.clear()
    next(steps)
    assert len(asked) == 1


def test_a_closed_engine_ends_what_runs():
    with closing(ScriptedEngine([HELLO, HELLO])) as engine:
        steps = engine.generate(ask(engine))
        next(steps)
    with pytest.raises(EngineClosed):
        next(steps)


def test_text_that_spells_nothing_special_is_encoded_as_the_tokenizer_does():
    tokenizer = tiny_tokenizer()
    text = "use atem, to self <|fake|> Ünïcode"
    assert wire_ids(text, tokenizer) == tokenizer.encode(text, add_special_tokens=False).ids
    assert wire_ids(wire.START, tokenizer) == [tokenizer.token_to_id(wire.START)]
