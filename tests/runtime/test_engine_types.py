"""Requests and samplings: what can't work is refused when it is made, what an engine lacks later."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atem
from atem.engine import GREEDY, EngineInfo, Feature, Request, Sampling, require_features
from atem.errors import OptionError, Unsupported
from atem.grammar import Form, Grammar
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap

NAN, INF = float("nan"), float("inf")
ENDS = {
    "temperature": ([0, 0.0, 1, 100], [-0.1, 100.1]),
    "top_k": ([0, 1, 10**6], [-1, 1.0]),
    "top_p": ([1e-9, 1], [0, 1.1]),
    "min_p": ([0, 1], [-0.1, 1.1]),
    "repetition_penalty": ([0.01, 10], [0, 0.009, 10.1]),
    "presence_penalty": ([-2, 2], [-2.1, 2.1]),
    "frequency_penalty": ([-2, 2], [-2.1, 2.1]),
    "seed": ([None, 0, 2**64 - 1], [-1, 2**64, 1.0]),
    "logprobs": ([None, 0, 20], [-1, 21, 1.0]),
}


# ---- Sampling


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (good, _) in ENDS.items() for v in good])
def test_both_ends_of_a_range_belong_to_it(name, value):
    assert getattr(Sampling(**{name: value}), name) == value


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (_, bad) in ENDS.items() for v in bad])
def test_a_value_beyond_its_range_is_refused_by_name(name, value):
    with pytest.raises(OptionError, match=f"{name}={value}"):
        Sampling(**{name: value})


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("value", [True, False, "1", NAN, INF, -INF, [1], -(10**400)])
def test_what_is_no_number_of_use_is_refused(name, value):
    with pytest.raises(OptionError, match=name):
        Sampling(**{name: value})


@pytest.mark.parametrize("name", sorted(ENDS.keys() - {"seed", "logprobs"}))
def test_only_seed_and_logprobs_may_be_none(name):
    with pytest.raises(OptionError, match=name):
        Sampling(**{name: None})


@given(changes=st.fixed_dictionaries({}, optional={n: st.floats() | st.integers() for n in ENDS}))
def test_any_numbers_make_a_sampling_or_an_option_error(changes):
    with suppress(OptionError):
        sampling = Sampling(**changes)
        assert all(getattr(sampling, name) == value for name, value in changes.items())


def test_only_a_temperature_of_0_is_greedy():
    assert GREEDY.greedy
    assert Sampling(temperature=0, top_k=5, seed=1).greedy
    assert not Sampling(temperature=1e-9).greedy


# ---- Request


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", NAN])
def test_max_tokens_is_a_whole_number_above_0(value):
    with pytest.raises(OptionError, match="max_tokens"):
        Request([1], max_tokens=value)


@pytest.mark.parametrize("value", [-1, True, 1.0, "1"])
def test_a_reasoning_budget_is_a_whole_number_from_0(value):
    with pytest.raises(OptionError, match="reasoning_budget"):
        Request([1], reasoning_budget=value)
    assert Request([1], reasoning_budget=0).reasoning_budget == 0


@pytest.mark.parametrize("value", ["end", ["end"], ("",), ("end", ""), (b"end",), (1,), None])
def test_stops_are_a_tuple_of_strings_that_are_not_empty(value):
    with pytest.raises(OptionError, match="stop"):
        Request([1], stop=value)


@pytest.mark.parametrize("value", ["", b"root", {"root": 1}])
def test_a_grammar_is_a_grammar(value):
    with pytest.raises(OptionError, match="grammar"):
        Request([1], grammar=value)


def test_a_sampling_is_a_sampling():
    with pytest.raises(OptionError, match="sampling"):
        Request([1], {"temperature": 0})


@pytest.mark.parametrize(
    "prompt",
    ["12", b"12", bytearray(b"12"), 12, None, iter([1, 2]), {1, 2}, np.array(5), torch.tensor(5)],
)
def test_text_is_no_prompt_and_neither_is_what_can_be_read_once(prompt):
    with pytest.raises(OptionError, match=r"prompt= got .*atem\.render"):
        Request(prompt)


@pytest.mark.parametrize(
    "item", [True, 1.0, "1", None, {"role": "user"}, np.float32(1), torch.tensor(1.5)]
)
def test_an_id_is_a_whole_number(item):
    with pytest.raises(OptionError, match="where a token id has to be"):
        Request([0, item])


# ---- prompt_ids


@pytest.mark.parametrize(
    "prompt", [[1, 2], (1, 2), np.array([1, 2], np.uint32), torch.tensor([1, 2])]
)
def test_ids_are_taken_from_a_list_an_array_or_a_tensor(prompt):
    ids = Request(prompt).prompt_ids(None)
    assert ids == [1, 2]
    assert {type(number) for number in ids} == {int}


def test_the_ids_are_the_callers_own_to_change():
    prompt = [1, 2]
    Request(prompt).prompt_ids(None).append(3)
    assert prompt == [1, 2]


def test_a_rendered_prompt_is_encoded_by_the_engines_tokenizer():
    tokenizer = wrap(tiny_tokenizer())
    prompt = atem.render([{"role": "user", "content": "<|eot|> is text here"}])
    ids = Request(prompt).prompt_ids(tokenizer)
    assert ids == prompt.token_ids(tokenizer)
    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == prompt.text()
    assert ids.count(tokenizer.special_id("<|eot|>")) < prompt.text().count("<|eot|>")


@pytest.mark.parametrize("ids", ["12", None, [1.5], [True], iter([1])])
def test_what_a_prompt_of_ones_own_gives_as_ids_is_checked_too(ids):
    class Own:
        images = ()

        def token_ids(self, tokenizer):
            return ids

    with pytest.raises(OptionError, match="prompt="):
        Request(Own()).prompt_ids(None)


# ---- require_features


class Illustrated(list):
    images = ("an image",)


class Filmed(list):
    videos = ("a video",)


PLAIN = Request([1], Sampling(top_k=0))
GRAMMAR = Grammar(Form("regex", "a"))
ASKING = {
    "grammar": [replace(PLAIN, grammar=GRAMMAR)],
    "images": [replace(PLAIN, prompt=Illustrated([1]))],
    "videos": [replace(PLAIN, prompt=Filmed([1]))],
    "logprobs": [replace(PLAIN, sampling=Sampling(top_k=0, logprobs=0))],
    "min_p": [replace(PLAIN, sampling=Sampling(top_k=0, min_p=0.1))],
    "penalties": [
        replace(PLAIN, sampling=Sampling(temperature=0, **{name: 1.5}))
        for name in ("repetition_penalty", "presence_penalty", "frequency_penalty")
    ],
    "reasoning_budget": [replace(PLAIN, reasoning_budget=0)],
    "seed": [replace(PLAIN, sampling=Sampling(top_k=0, seed=0))],
    "stop": [replace(PLAIN, stop=("x",))],
    "top_k": [replace(PLAIN, sampling=Sampling(top_k=1)), Request([1])],
}


def info(*features: Feature) -> EngineInfo:
    return EngineInfo("tiny", "test", 8, frozenset({1}), frozenset(features))


def test_every_feature_but_chat_has_its_request_here():
    assert ASKING.keys() == set(get_args(Feature)) - {"chat"}


@pytest.mark.parametrize("feature", sorted(ASKING))
def test_what_an_engine_lacks_is_refused_by_name_and_only_that(feature):
    others = ASKING.keys() - {feature}
    for request in ASKING[feature]:
        with pytest.raises(Unsupported, match=f"test engine can't honour {feature};"):
            require_features(info(*others), request)
        require_features(info(feature), request)


def test_all_that_is_lacking_is_named_at_once():
    request = replace(PLAIN, grammar=GRAMMAR, stop=("x",))
    with pytest.raises(Unsupported, match=r"grammar, stop;.*this one has: seed"):
        require_features(info("seed"), request)


def test_a_plain_request_asks_for_nothing():
    require_features(info(), PLAIN)


def test_greedy_asks_for_no_filter():
    require_features(info(), Request([1], Sampling(temperature=0, top_k=64, min_p=0.5)))


def test_a_chat_beside_the_prompt_is_never_refused():
    require_features(info(), replace(PLAIN, chat={"messages": []}))
