"""Each field of a request: its range, its default, what becomes of it, how it is echoed."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from openai.types.responses import response_create_params
from openresponses_types.types import ResponseResource

from atem.engine import Sampling
from atem.responses.fields import FIELDS
from tests.responses.request.asking import ask, refused, system

ITEM_KEYS = {"id", "object", "created_at", "completed_at", "status", "incomplete_details", "output", "error", "usage"}  # fmt: skip
"""What the response object says of itself; every other key repeats the request."""

NOT_ECHOED_UNSET = {"conversation", "user"}

BAD = [
    ("model", 5), ("model", None), ("model", ""),
    ("instructions", ["x"]), ("instructions", 1),
    ("previous_response_id", 1), ("conversation", 1), ("conversation", {"name": "x"}),
    ("max_output_tokens", 0), ("max_output_tokens", -1), ("max_output_tokens", "9"), ("max_output_tokens", 1.5), ("max_output_tokens", True),
    ("temperature", -0.1), ("temperature", 2.1), ("temperature", "1"), ("temperature", True),
    ("top_p", -0.1), ("top_p", 1.1), ("top_logprobs", -1), ("top_logprobs", 21),
    ("presence_penalty", 2.5), ("frequency_penalty", -2.5), ("repetition_penalty", 0), ("min_p", 2),
    ("seed", "x"), ("top_k", 1.5), ("stop", 5), ("stop", [1]), ("stop", ["x"] * 17), ("stop", "x" * 1025),
    ("tools", {}), ("tools", "x"), ("parallel_tool_calls", "yes"), ("text", "json"), ("reasoning", "high"),
    ("include", "x"), ("include", [1]), ("store", 1), ("background", "no"), ("stream", 1),
    ("truncation", "middle"), ("truncation", ["auto"]), ("generate", 0), ("prompt_cache_options", 1), ("prompt_cache_key", 1),
    ("max_tool_calls", -1), ("metadata", []), ("metadata", {"a": 1}), ("metadata", {"k" * 65: "x"}), ("metadata", {"k": "x" * 513}),
    ("metadata", {str(n): "x" for n in range(17)}), ("safety_identifier", 1), ("user", 1), ("service_tier", 1), ("stream_options", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_value_out_of_range_is_a_400_that_names_the_field(name: str, value: Any) -> None:
    error = refused(**{name: value})
    assert (error.status, error.type) == (400, "invalid_request_error")
    assert (error.param or "").partition(".")[0].partition("[")[0] == name
    assert error.code in ("invalid_value", "missing_required_parameter")


GOOD = [
    ("max_output_tokens", 1), ("temperature", 0), ("temperature", 2), ("top_p", 0), ("top_p", 1), ("top_logprobs", 20),
    ("presence_penalty", -2), ("frequency_penalty", 2), ("parallel_tool_calls", False), ("store", False), ("background", True),
    ("truncation", "auto"), ("prompt_cache_key", "k"), ("max_tool_calls", 3), ("safety_identifier", "s"), ("user", "u"),
    ("metadata", {"k" * 64: "v" * 512}), ("metadata", {str(n): "x" for n in range(16)}), ("previous_response_id", "resp_1"),
    ("instructions", "Be brief."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_a_value_in_range_is_echoed_as_it_is(name: str, value: Any) -> None:
    assert ask(**{name: value}).echo[name] == value


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in ("model", "input")])
def test_null_is_the_same_as_leaving_a_field_out(name: str) -> None:
    left_out, null = ask(), ask(**{name: None})
    assert null.echo == left_out.echo
    assert (null.sampling, null.store, null.parallel) == (left_out.sampling, left_out.store, left_out.parallel)  # fmt: skip


def test_the_model_is_missing_with_its_own_code() -> None:
    error = refused(model=None)
    assert (error.code, error.param) == ("missing_required_parameter", "model")


def test_the_model_is_echoed_as_it_was_sent() -> None:
    assert ask(model="any/Name:7").echo["model"] == "any/Name:7"


def test_something_has_to_be_answered() -> None:
    assert (refused(None).code, refused(None).param) == ("missing_required_parameter", "input")
    assert ask(None, previous_response_id="resp_1").items == ()
    assert ask(None, conversation="conv_1").conversation == "conv_1"


def test_two_pasts_exclude_each_other() -> None:
    assert refused(previous_response_id="resp_1", conversation="conv_1").status == 400


def test_a_conversation_is_an_id_or_an_object_with_one() -> None:
    assert ask(conversation={"id": "conv_1"}).echo["conversation"] == {"id": "conv_1"}
    assert ask(conversation="conv_1").echo["conversation"] == {"id": "conv_1"}


def test_background_needs_a_store() -> None:
    assert refused(background=True, store=False).param == "background"
    assert ask(background=True).background


def test_stored_unless_told_otherwise() -> None:
    assert ask().store
    assert not ask(store=False).store


def test_a_prompt_template_is_refused() -> None:
    error = refused(prompt={"id": "pmpt_1"})
    assert (error.code, error.param) == ("unsupported_parameter", "prompt")


@pytest.mark.parametrize("name", [name for name, row in FIELDS.items() if row.effect == "noted"])
def test_what_has_no_effect_is_accepted_and_noted(name: str) -> None:
    assert any(note.startswith(name) for note in ask(**{name: {"a": 1}}).notes)


@pytest.mark.parametrize("name", [name for name, row in FIELDS.items() if row.effect == "ignored"])
def test_what_has_no_consequence_is_accepted_without_a_word(name: str) -> None:
    assert ask(**{name: {}}).notes == ()


def test_unknown_keys_are_accepted_and_noted_in_a_few_words() -> None:
    notes = ask(**{f"key{n}" * 50: n for n in range(100)}).notes
    assert len(notes) == 9
    assert sum(map(len, notes)) < 1000


@pytest.mark.parametrize(
    "tier", ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast", "new"]
)
def test_every_service_tier_is_answered_by_the_default_one(tier: str) -> None:
    assert ask(service_tier=tier).echo["service_tier"] == "default"


def test_every_known_and_unknown_include_is_accepted() -> None:
    made = ask(include=["reasoning.encrypted_content", "message.output_text.logprobs", "web_search_call.results", "x"])  # fmt: skip
    assert made.encrypted
    assert made.logprobs
    assert not ask().encrypted
    assert not ask().logprobs


@pytest.mark.parametrize(
    ("body", "samples"),
    [
        ({}, {}),
        ({"temperature": 0.5, "top_p": 0.25}, {"temperature": 0.5, "top_p": 0.25}),
        ({"seed": 5, "top_k": 3, "min_p": 0.1}, {"seed": 5, "top_k": 3, "min_p": 0.1}),
        ({"seed": -1}, {"seed": 2**64 - 1}),
        ({"top_k": -1}, {"top_k": 0}),
        ({"repetition_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1}, {"repetition_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1}),
        ({"top_logprobs": 4}, {"logprobs": 4}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": 0}),
    ],
)  # fmt: skip
def test_what_samples_is_what_was_asked_over_the_defaults(
    body: dict[str, Any], samples: dict[str, Any]
) -> None:
    defaults = Sampling(temperature=0.3, top_k=7)
    expected = Sampling(**{"temperature": 0.3, "top_k": 7, **samples})
    assert ask(options={"defaults": defaults}, **body).sampling == expected


def test_defaults_are_echoed_as_they_are_in_effect() -> None:
    echo = ask(options={"defaults": Sampling(temperature=0.3, top_p=0.7)}).echo
    assert (echo["temperature"], echo["top_p"]) == (0.3, 0.7)
    assert (echo["presence_penalty"], echo["frequency_penalty"]) == (0, 0)


def test_top_p_0_keeps_the_likeliest_token_alone() -> None:
    assert 0 < ask(top_p=0).sampling.top_p < 1e-6


def test_stop_is_a_string_or_several_and_an_empty_one_stops_nothing() -> None:
    assert ask(stop="END").stop == ("END",)
    assert ask(stop=["a", "", "b", "a"]).stop == ("a", "b")


def test_prewarming_is_asked_in_two_ways() -> None:
    assert ask(generate=False).prewarm
    assert ask(prompt_cache_options={"prewarm": True, "mode": "implicit"}).prewarm
    assert not ask().prewarm


@pytest.mark.parametrize(
    ("effort", "strength", "echoed"),
    [
        (None, None, None), ("none", "low", "none"), ("minimal", "low", "minimal"), ("low", "low", "low"),
        ("medium", "medium", "medium"), ("high", "high", "high"), ("xhigh", "xhigh", "xhigh"), ("max", "xhigh", "max"),
        ("HIGH", "high", "high"), ("off", "low", "none"), ("maximum", "xhigh", "max"), ("hihg", "high", "high"), ("???", None, None),
    ],
)  # fmt: skip
def test_each_effort_has_a_strength_and_an_unknown_one_the_nearest(
    effort: Any, strength: Any, echoed: Any
) -> None:
    made = ask(reasoning={"effort": effort})
    assert (made.strength, made.echo["reasoning"]["effort"]) == (strength, echoed)
    assert f"Reasoning strength: {strength or 'high'}." in system(made)
    assert bool(made.notes) == (effort not in (None, "none", "minimal", "low", "medium", "high", "xhigh", "max", "HIGH"))  # fmt: skip


@pytest.mark.parametrize("key", ["summary", "generate_summary"])
@pytest.mark.parametrize(("given", "echoed"), [("auto", "auto"), ("concise", "concise"), ("detailed", "detailed"), ("none", None), (None, None), ("odd", "auto")])  # fmt: skip
def test_a_summary_is_asked_under_two_names(key: str, given: Any, echoed: Any) -> None:
    made = ask(reasoning={key: given})
    assert made.summary == (echoed is not None)
    assert made.echo["reasoning"]["summary"] == echoed


def test_reasoning_of_earlier_turns_is_left_out_on_request() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "OLD"}]}
    recent = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "NEW"}]}
    items = [{"role": "user", "content": "a"}, thought, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, recent]  # fmt: skip
    shown = ask(items, reasoning={"context": "current_turn"}).prompt().text()
    assert "OLD" not in shown
    assert "NEW" in shown
    for context in (None, "auto", "all_turns"):
        assert "OLD" in ask(items, reasoning={"context": context}).prompt().text()
    assert refused(reasoning={"context": "odd"}).param == "reasoning.context"


def test_effort_that_the_system_text_overrules_is_noted() -> None:
    assert ask(instructions="Reasoning effort: low", reasoning={"effort": "high"}).notes
    assert not ask(instructions="Be brief.", reasoning={"effort": "high"}).notes


def test_the_mode_of_reasoning_is_noted() -> None:
    assert ask(reasoning={"mode": "pro"}).notes
    assert not ask(reasoning={"mode": "standard"}).notes


@pytest.mark.parametrize("verbosity", ["low", "medium", "high"])
def test_verbosity_is_echoed_and_changes_nothing(verbosity: str) -> None:
    made = ask(text={"verbosity": verbosity})
    assert made.echo["text"] == {"format": {"type": "text"}, "verbosity": verbosity}
    assert made.prompt().text() == ask().prompt().text()
    assert refused(text={"verbosity": "loud"}).param == "text.verbosity"


def test_the_echo_has_every_key_that_the_response_object_repeats() -> None:
    expected = set(ResponseResource.model_fields) - ITEM_KEYS
    assert set(ask().echo) == expected


def test_user_and_conversation_are_echoed_only_if_they_were_sent() -> None:
    assert not NOT_ECHOED_UNSET & set(ask().echo)
    assert ask(user="u").echo["user"] == "u"


def test_two_requests_share_no_mutable_default() -> None:
    ask().echo["metadata"]["x"] = "y"
    ask().echo["tools"].append(1)
    assert (ask().echo["metadata"], ask().echo["tools"]) == ({}, [])


def test_the_table_has_every_field_that_the_sdk_can_send() -> None:
    sent = typing.get_type_hints(response_create_params.ResponseCreateParamsBase)
    assert set(sent) - set(FIELDS) == set()


def test_every_row_says_what_becomes_of_its_field() -> None:
    assert all(row.says and row.effect for row in FIELDS.values())
