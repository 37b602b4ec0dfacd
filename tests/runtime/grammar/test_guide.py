"""Where nothing is masked, where a turn may end, and what a prompt may have opened."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref

import numpy as np
import pytest

from atem import wire
from atem.engine import GREEDY, Request
from atem.errors import EngineError, OptionError, Unsupported
from atem.grammar import TEXT, CallForm, Form, Grammar, Parameter
from atem.runtime.generation import FEATURES, Generation, features
from atem.runtime.grammar import compiled
from atem.runtime.grammar.guide import Guide
from atem.runtime.grammar.vocabulary import Vocabulary
from atem.runtime.sampling import candidates
from atem.testing.scripted import wire_ids
from atem.testing.tiny import SPECIALS, VOCABULARY
from atem.tokenizer import wrap
from tests.parser.tokens import byte_tokenizer
from tests.runtime.grammar.asking import DICE, PROMPT, asked, json_form, torch_engine, written

TOKENIZER, STOPS = DICE.tokenizer, DICE.stop_ids
EOM, START, MESSAGE = (TOKENIZER.special_id(text) for text in (wire.EOM, wire.START, wire.MESSAGE))
ANSWER = json_form({"type": "object", "properties": {}, "additionalProperties": False})
CALL = CallForm("read", (Parameter("path", TEXT, required=True),))
OPENED = "<|start|>assistant"
CALLED = (
    '<atem:function_calls>\n<atem:invoke name="read">\n<atem:parameter name="path">x</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)


def guide(grammar: Grammar, text: str = OPENED, **options) -> Guide:
    """A guide that has followed ``text``, of which a prompt ends in the first part."""
    made = Guide(DICE.vocabulary.compiled(grammar), wire_ids(OPENED, TOKENIZER), **options)
    for number in wire_ids(text.removeprefix(OPENED), TOKENIZER) if text != OPENED else ():
        made.record(number)
    return made


def may(made: Guide, *texts: str) -> list[bool]:
    """Whether each of ``texts`` may come next."""
    allowed = made.allowed
    return [allowed is None or bool(allowed[wire_ids(text, TOKENIZER)[0]]) for text in texts]


def test_in_reasoning_nothing_is_masked_but_the_end_of_the_turn():
    for grammar in (Grammar(ANSWER), Grammar(None, (CALL,)), Grammar(TEXT, (CALL,))):
        made = guide(grammar, " to=self<|message|>Well, {<atem:invoke")
        assert np.flatnonzero(~made.allowed).tolist() == sorted(STOPS)
        assert made.only is None
        assert made.need(5) == 5 + len(STOPS)
        assert made.need(None) is None


@pytest.mark.parametrize("grammar", [Grammar(TEXT), Grammar(TEXT, (CALL,))])
def test_in_an_answer_that_is_free_nothing_is_masked_and_no_more_is_needed(grammar):
    made = guide(grammar, " to=user<|message|>{")
    assert made.allowed is None
    assert (made.need(5), made.only) == (5, None)


def test_a_header_goes_where_a_message_may_go():
    for grammar, may_go in (
        (Grammar(ANSWER), (True, True, False)),
        (Grammar(ANSWER, (CALL,)), (True, True, True)),
        (Grammar(None, (CALL,)), (True, False, True)),
    ):
        assert may(guide(grammar, " to="), "self", "user", "read") == list(may_go)


def test_a_turn_ends_after_an_answer_or_a_call_and_before_them_never():
    ends = "<|eot|>", "<|end_of_text|>"
    said = {
        "": False, " to=user<|message|>": False, " to=user<|message|>{": False,
        " to=user<|message|>{}": True, " to=self<|message|>x": False,
        f" to=read<|message|>{CALLED}": True, f" to=read<|message|>{CALLED[:-1]}": False,
        f" to=read<|message|>{CALLED}<|eom|>": False,
        f" to=read<|message|>{CALLED}<|eom|><|start|>assistant to=self<|message|>x": True,
    }  # fmt: skip
    for text, over in said.items():
        assert may(guide(Grammar(ANSWER, (CALL,)), text), *ends) == [over, over], text


def test_an_answer_with_a_form_is_the_last_message():
    assert may(guide(Grammar(ANSWER), " to=user<|message|>{}"), "<|eom|>", " ") == [False, False]
    assert may(guide(Grammar(TEXT), " to=user<|message|>{}"), "<|eom|>", " ") == [True, True]


def test_reasoning_follows_on_anything_but_reasoning():
    thought = " to=self<|message|>x<|eom|><|start|>assistant to="
    called = f" to=read<|message|>{CALLED}<|eom|><|start|>assistant to="
    assert may(guide(Grammar(TEXT, (CALL,)), thought), "self", "user") == [False, True]
    assert may(guide(Grammar(TEXT, (CALL,)), called), "self", "user") == [True, True]


def test_a_message_that_was_not_ended_is_left_by_the_next_header():
    for text in (" to=self<|message|>x", " to=user<|message|>x"):
        assert may(guide(Grammar(TEXT, (CALL,)), f"{text}<|start|>assistant to="), "read") == [True]


@pytest.mark.parametrize("bare", ["to=read", "Well.\n to=read", "x to=read.read "])
def test_reasoning_may_end_in_a_bare_header_to_a_tool(bare):
    made = guide(Grammar(None, (CALL,)), f" to=self<|message|>{bare}<|message|>")
    assert may(made, "<", "x") == [True, False]


@pytest.mark.parametrize("bare", ["to=user", "to=other", "into=read", "to=read x", "x"])
def test_what_is_no_bare_header_to_a_tool_is_reasoning(bare):
    made = guide(Grammar(None, (CALL,)), f" to=self<|message|>{bare}<|message|>")
    assert may(made, "<", "x") == [True, True]


def test_special_tokens_are_no_text():
    made = guide(Grammar(None, (CALL,)), f" to=read<|message|>{CALLED.partition('x<')[0]}")
    assert may(made, "x") == [True]
    assert not made.allowed[list(map(TOKENIZER.special_id, SPECIALS))].any()


def test_the_ids_of_a_padded_table_never_come():
    made = guide(Grammar(Form("regex", "(?s:.*)")), " to=user<|message|>")
    assert not made.allowed[len(SPECIALS) + 268 :].any()


def test_what_is_certain_is_written_without_asking_the_model():
    made = guide(Grammar(ANSWER), thinking=False)
    ids = []
    while made.only is not None:
        ids.append(made.only)
        made.record(ids[-1])
    assert ids == wire_ids(" to=user<|message|>{", TOKENIZER)


@pytest.mark.parametrize(
    "opened", ["", " to=", " to=us", " to=user", " to=user<|message|>", " to=user<|message|>{ "]
)
def test_a_prompt_may_end_anywhere_in_what_the_grammar_allows(opened):
    wrote = written(DICE, Grammar(ANSWER), prompt=PROMPT + opened, seed=1, reasoning_budget=0)
    whole = OPENED + opened + wrote.text
    assert json.loads(whole.partition("to=user<|message|>")[2].partition("<|e")[0]) == {}


@pytest.mark.parametrize(
    "opened", [" to=commentary<|message|>", " to=user<|message|>x", " to=read", " hm", "\n to=user"]
)
def test_a_prompt_that_opened_something_else_is_refused_by_the_call(opened):
    with pytest.raises(OptionError, match="the message that the prompt has opened"):
        written(DICE, Grammar(ANSWER), prompt=PROMPT + opened)


@pytest.mark.parametrize(
    "prompt", ["<|begin_of_text|>", "x", PROMPT.removesuffix("<|start|>assistant")]
)
def test_a_prompt_that_opened_nothing_is_followed_by_a_whole_header(prompt):
    wrote = written(DICE, Grammar(ANSWER), prompt=prompt, seed=1, reasoning_budget=0)
    assert wrote.text.startswith("<|start|>assistant to=user<|message|>{")


def test_a_token_against_the_grammar_is_an_error_and_not_taken():
    with pytest.raises(EngineError, match="against the grammar"):
        guide(Grammar(ANSWER), " to=read")


# With a budget for reasoning


@pytest.mark.parametrize("budget", [0, 1, 7])
@pytest.mark.parametrize(
    "grammar", [Grammar(ANSWER), Grammar(None, (CALL,)), Grammar(ANSWER, (CALL,))]
)
def test_a_spent_budget_closes_reasoning_and_what_is_allowed_comes(budget, grammar):
    prompt = f"{PROMPT} to=self<|message|>"
    wrote = written(DICE, grammar, prompt=prompt, seed=4, reasoning_budget=budget, max_tokens=3000)
    assert wrote.ids[budget] == EOM or EOM in wrote.ids[:budget]
    rest = wrote.text.partition("<|eom|>")[2]
    assert rest.startswith(("<|start|>assistant to=user", "<|start|>assistant to=read"))
    assert "to=self" not in rest.partition("<|message|>")[0]


def test_without_a_grammar_a_budget_still_opens_the_answer():
    wrote = written(DICE, None, prompt=f"{PROMPT} to=self<|message|>", seed=4, reasoning_budget=1)
    assert "<|eom|><|start|>assistant to=user<|message|>" in wrote.text


def test_a_call_that_is_too_long_for_the_context_is_cut():
    wrote = written(DICE, Grammar(None, (CALL,)), seed=4, max_tokens=9, reasoning_budget=0)
    assert wrote.finish == "length"


# Who can


def test_an_engine_claims_grammars_where_framing_is_special_tokens():
    assert features(TOKENIZER) == FEATURES | {"grammar"}
    bare = wrap(byte_tokenizer())
    assert features(bare) == FEATURES
    request = Request(bare.encode("x"), GREEDY, grammar=Grammar(ANSWER))
    with pytest.raises(Unsupported, match=r"<\|start\|>, .* as special tokens"):
        Generation(request, [1], Vocabulary(bare, {0}, 300), context=99)


def test_a_model_that_never_stops_takes_no_grammar():
    with pytest.raises(Unsupported, match="stop token"):
        Generation(
            asked(DICE, Grammar(ANSWER)), [1], Vocabulary(TOKENIZER, (), VOCABULARY), context=99
        )


def test_without_the_library_nobody_claims_it_and_whoever_asks_is_told_the_extra():
    code = """
import sys
sys.modules["llguidance"] = None
from importlib import util
find = util.find_spec
util.find_spec = lambda name: None if name == "llguidance" else find(name)
from atem.errors import MissingExtra
from atem.grammar import Form
from atem.runtime.generation import FEATURES, features
from atem.runtime.grammar.compiled import fault
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
assert features(wrap(tiny_tokenizer())) == FEATURES
try:
    fault(Form("regex", "x"))
except MissingExtra as error:
    assert "[grammar]" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_library_is_loaded_by_the_first_grammar_and_not_before():
    code = """
import sys
from atem.runtime.reference import ReferenceEngine
from atem.testing.tiny import MemoryCheckpoint, tiny_tokenizer
from atem.engine import Request, GREEDY
engine = ReferenceEngine(MemoryCheckpoint(), tokenizer=tiny_tokenizer())
assert "grammar" in engine.info.features
list(engine.generate(Request([1], GREEDY, max_tokens=2)))
assert "llguidance" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tokenizer_that_can_not_be_hashed_is_no_hindrance():
    class Listed(list):
        """Unhashable, and equal to every other one."""

        def __getattr__(self, name):
            return getattr(TOKENIZER, name)

    request = asked(DICE, Grammar(ANSWER), prompt=f"{PROMPT} to=user<|message|>")
    for tokenizer in (Listed(), Listed()):
        vocabulary = Vocabulary(tokenizer, STOPS, VOCABULARY)
        generation = Generation(request, request.prompt_ids(tokenizer), vocabulary, context=999)
        row = np.zeros(VOCABULARY, np.float32)
        assert generation.take(candidates(row, generation.need)).ids == tuple(TOKENIZER.encode("{"))


def test_what_is_compiled_is_compiled_once_for_an_engine_and_goes_with_it():
    one, other = (Vocabulary(TOKENIZER, STOPS, VOCABULARY) for _ in range(2))
    made = weakref.ref(one.compiled(Grammar(ANSWER)))
    assert one.compiled(Grammar(ANSWER)) is made()
    assert other.compiled(Grammar(ANSWER)) is not made()
    del one
    gc.collect()
    assert made() is None


def test_a_grammar_that_grows_too_costly_ends_its_own_request_and_no_other(monkeypatch):
    engine = torch_engine()
    alone = written(engine, None, seed=1, max_tokens=40)
    monkeypatch.setitem(compiled._LIMITS, "max_lexer_states", 60)
    grammar = Grammar(Form("regex", "([a-m][n-z]){90}"))
    costly = engine.generate(asked(engine, grammar, seed=1, reasoning_budget=0))
    other = engine.generate(asked(engine, None, seed=1, max_tokens=40))
    next(other)
    with pytest.raises(EngineError, match="too costly"):
        list(costly)
    assert alone.ids[1:] == tuple(number for step in other for number in step.ids)


def test_what_requests_add_to_a_grammar_does_not_add_up(monkeypatch):
    monkeypatch.setitem(compiled._LIMITS, "max_lexer_states", 2000)
    monkeypatch.setattr(compiled, "MAX_COPIES", 8)
    grammar = Grammar(Form("regex", "[ab]*a[ab]{16}c"))  # a state for each end of a text
    for seed in range(200):
        written(DICE, grammar, seed=seed, reasoning_budget=0, max_tokens=50)
