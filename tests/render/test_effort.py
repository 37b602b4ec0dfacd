"""How hard to think: one line, one of four words, other APIs' names translated."""

from __future__ import annotations

import pytest

from atem.errors import OptionError
from atem.messages import ImagePart, Message, TextPart
from atem.render import render, strength_of


@pytest.mark.parametrize(
    ("effort", "strength"),
    [
        ("none", "low"),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "xhigh"),
        ("max", "xhigh"),
    ],
)
def test_each_effort_has_a_strength_in_the_prompt(effort: str, strength: str) -> None:
    text = render([Message("user", "x")], effort=effort).text()
    assert f"Reasoning strength: {strength}.\n" in text


@pytest.mark.parametrize("strength", ["low", "medium", "high", "xhigh"])
def test_each_strength_is_written_as_it_is(strength: str) -> None:
    text = render([Message("user", "x")], reasoning_strength=strength).text()
    assert f"Reasoning strength: {strength}.\n" in text


def test_the_default_is_high() -> None:
    assert strength_of() == "high"


def test_both_names_may_be_given_if_they_agree() -> None:
    assert strength_of("xhigh", "max") == "xhigh"


def test_two_names_that_differ_are_refused() -> None:
    with pytest.raises(OptionError, match="differ"):
        render([], reasoning_strength="low", effort="high")


@pytest.mark.parametrize(
    "options",
    [
        {"reasoning_strength": "none"},
        {"reasoning_strength": ""},
        {"effort": "extreme"},
        {"effort": "HIGH"},
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="low, medium, high"):
        render([], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Reasoning effort: low", "Reasoning strength: low"),
        ("Reasoning Effort: low", "Reasoning Strength: low"),
        ("your reasoning effort", "your reasoning strength"),
        ("REASONING EFFORT", "REASONING STRENGTH"),
        ("ReAsOnInG StReNgTh: low", "ReAsOnInG StReNgTh: low"),
    ],
)
def test_a_system_text_that_states_it_gets_no_second_line(said: str, written: str) -> None:
    text = render([Message("system", said)], reasoning_strength="xhigh").text()
    assert f"<|message|>{written}\n\n# Valid" in text
    assert text.lower().count("reasoning strength") == 1


def test_a_wording_split_over_two_parts_is_found() -> None:
    parts = (TextPart("Reasoning ef"), TextPart("fort: low"))
    assert "Reasoning strength: low\n\n# Valid" in render([Message("system", parts)]).text()


def test_an_image_between_two_words_keeps_them_apart() -> None:
    parts = (TextPart("reasoning "), ImagePart(), TextPart("strength"))
    assert "\n\nReasoning strength: high." in render([Message("system", parts)]).text()


def test_a_user_s_wording_is_left_alone() -> None:
    text = render([Message("user", "Reasoning effort?")]).text()
    assert "<|message|>Reasoning effort?<|eot|>" in text
    assert "Reasoning strength: high." in text
