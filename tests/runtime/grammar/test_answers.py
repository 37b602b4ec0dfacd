"""An answer that has a form: what a random model writes under it always has it."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.engine import GREEDY, Sampling, Step
from atem.errors import Unsupported
from atem.grammar import TEXT, CallForm, Form, Grammar, Parameter
from tests.runtime.grammar.asking import (
    DICE,
    PROMPT,
    asked,
    fits,
    json_form,
    reference,
    torch_engine,
    written,
)

NUMBERS = st.builds(
    lambda least, span: {"type": "integer", "minimum": least, "maximum": least + span},
    st.integers(-200, 200), st.integers(0, 300),
)  # fmt: skip
STRINGS = st.builds(lambda most: {"type": "string", "maxLength": most}, st.integers(0, 6))
ENUMS = st.lists(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text('aé"\\\n<|🌊', max_size=4),
    min_size=1, max_size=4, unique_by=json.dumps,
).map(lambda members: {"enum": members})  # fmt: skip
LEAVES = NUMBERS | STRINGS | ENUMS | st.sampled_from(({"type": "boolean"}, {"type": "null"}))


def record(members: dict) -> dict:
    return {
        "type": "object", "properties": members, "required": list(members),
        "additionalProperties": False,
    }  # fmt: skip


def grown(inner):
    names = st.text('ab <"é', min_size=1, max_size=3)
    lists = st.builds(
        lambda items, most: {"type": "array", "items": items, "maxItems": most},
        inner, st.integers(0, 3),
    )  # fmt: skip
    return lists | st.dictionaries(names, inner, max_size=3).map(record)


SCHEMAS = st.recursive(LEAVES, grown, max_leaves=5)


@settings(max_examples=60)
@given(SCHEMAS, st.none() | st.integers(0, 99))
def test_what_ends_fits_its_schema(schema, seed):
    wrote = written(
        DICE, Grammar(json_form(schema)), seed=seed, prompt=f"{PROMPT} to=user<|message|>",
        channel="user", max_tokens=400,
    )  # fmt: skip
    if wrote.finish == "stop":
        jsonschema.validate(json.loads(wrote.turn.content), schema)
    assert wrote.finish in ("stop", "length")


SCHEMA = record({
    "n": {"type": "integer", "minimum": 0, "maximum": 99},
    "word": {"type": "string", "maxLength": 4},
    "kinds": {"type": "array", "items": {"enum": ["a", "é"]}, "maxItems": 3},
})  # fmt: skip
FORM = Grammar(json_form(SCHEMA))


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_turn_is_reasoning_and_then_one_answer_that_fits(seed):
    wrote = written(DICE, FORM, seed=seed, reasoning_budget=9)
    assert wrote.finish == "stop"
    assert fits(SCHEMA, wrote.turn.content)
    assert [
        part for part in re.findall(r"to=(\w+)<\|message\|>", wrote.text) if part != "self"
    ] == ["user"]
    assert not wrote.turn.calls
    assert not wrote.turn.problems


def test_nothing_stands_before_or_behind_the_answer():
    wrote = written(DICE, FORM, seed=1, reasoning_budget=0)
    assert re.fullmatch(
        r" to=user<\|message\|>\{.*\}<\|(eot|end_of_text)\|>", wrote.text, re.DOTALL
    )


@pytest.mark.parametrize("seed", [None, *range(4)])
@pytest.mark.parametrize("budget", [0, 9])
def test_all_engines_write_the_same(seed, budget):
    one, other = (
        written(engine, FORM, seed=seed, reasoning_budget=budget, max_tokens=120)
        for engine in (reference(), torch_engine())
    )
    assert (one.ids, one.finish) == (other.ids, other.finish)


def test_requests_with_and_without_a_grammar_share_passes_and_change_nothing():
    engine = torch_engine()
    alone = [written(engine, grammar, seed=5, max_tokens=60).ids for grammar in (FORM, None)]
    running = [
        engine.generate(asked(engine, grammar, seed=5, max_tokens=60)) for grammar in (FORM, None)
    ]
    rounds = list(itertools.zip_longest(*running, fillvalue=Step()))
    together = [
        [number for step in steps for number in step.ids] for steps in zip(*rounds, strict=True)
    ]
    assert [tuple(ids) for ids in together] == alone


def test_an_answer_that_is_cut_says_so():
    wrote = written(DICE, FORM, seed=1, reasoning_budget=0, max_tokens=12)
    assert (wrote.finish, len(wrote.ids)) == ("length", 12)
    assert not fits(SCHEMA, wrote.turn.content)


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        (Form("regex", "[a-c]{2,4}/é"), r"[a-c]{2,4}/é"),
        (Form("regex", "(yes)?"), r"(yes)?"),
        (Form("lark", 'start: "a" WORD\nWORD: /[xy]{1,3}/'), r"a[xy]{1,3}"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_an_answer_may_have_another_form(form, pattern, seed):
    wrote = written(DICE, Grammar(form), seed=seed, reasoning_budget=0)
    assert wrote.finish == "stop"
    assert re.fullmatch(pattern, wrote.turn.content)


def test_an_answer_without_a_form_is_the_models_own():
    opened = f"{PROMPT} to=user<|message|>"
    held, free = (
        written(DICE, grammar, seed=1, prompt=opened, channel="user", max_tokens=40)
        for grammar in (Grammar(TEXT), None)
    )
    assert held.ids == free.ids


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.3},
        {"top_k": 2},
        {"top_p": 0.5},
        {"min_p": 0.3},
        {"repetition_penalty": 1.5},
    ],
)
def test_filters_and_penalties_choose_among_what_is_allowed(change):
    sampling = Sampling(**{"top_k": 0, "top_p": 1.0, "seed": 3, **change})
    wrote = written(DICE, FORM, sampling=sampling, reasoning_budget=0)
    assert wrote.finish == "stop"
    assert fits(SCHEMA, wrote.turn.content)


def test_log_probabilities_are_the_models_own():
    engine = reference()
    prompt, sampling = f"{PROMPT} to=user<|message|>", replace(GREEDY, logprobs=5)
    free, held = (
        next(engine.generate(asked(engine, grammar, prompt=prompt, sampling=sampling)))
        for grammar in (None, FORM)
    )
    assert held.top_logprobs == free.top_logprobs
    assert held.ids == tuple(engine.tokenizer.encode("{")) != free.ids
    assert held.logprobs[0] < min(value for _, value in free.top_logprobs[0])


def test_a_stop_string_ends_an_answer_too():
    whole = written(DICE, FORM, seed=1, reasoning_budget=0)
    stop = whole.turn.content[4:7]
    wrote = written(DICE, FORM, seed=1, reasoning_budget=0, stop=(stop,))
    assert wrote.finish == "stop"
    assert wrote.turn.content == whole.turn.content[: whole.turn.content.index(stop)]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (json_form({"type": "string", "pattern": "(?=x)y"}), "look"),
        (json_form({"$ref": "https://elsewhere/schema"}), "elsewhere"),
        (json_form({"type": "string", "format": "colour"}), "format"),
        (Form("regex", "a("), "unclosed group"),
        (Form("lark", "start: missing_rule"), "missing_rule"),
    ],
)
def test_what_can_not_be_compiled_is_refused_by_the_call_with_the_reason(form, reason):
    with pytest.raises(Unsupported, match=f"(?i){reason}"):
        written(DICE, Grammar(form))
    call = CallForm("t", (Parameter("p", form),))
    with pytest.raises(Unsupported, match=f"(?i){reason}"):
        written(DICE, Grammar(None, (call,)))
