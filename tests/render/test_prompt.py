"""Segments, and ids with tokenizers that lack what the prompt needs."""

from __future__ import annotations

import itertools

import pytest
from tokenizers import Tokenizer

from atem import wire
from atem.errors import OptionError, RenderError, TokenError
from atem.messages import ImagePart, Message, TextPart
from atem.parser.text import Text
from atem.render import Segment, render

HELLO = [Message("system", "Be brief."), Message("user", "Hi")]


def without(tokenizer: Tokenizer, *literals: str) -> Tokenizer:
    """A copy of ``tokenizer`` in which ``literals`` are no tokens."""
    import json

    spec = json.loads(tokenizer.to_str())
    kept = [token for token in spec["added_tokens"] if token["content"] not in literals]
    return Tokenizer.from_str(json.dumps(spec | {"added_tokens": kept}))


def test_adjacent_texts_are_one_segment_and_empty_ones_none() -> None:
    prompt = render(
        [Message("user", (TextPart("a"), TextPart(""), TextPart("b"))), Message("user", "")]
    )
    texts = [segment.text for segment in prompt]
    assert "ab" in texts
    assert "" not in texts
    kinds = [segment.control for segment in prompt]
    assert not any(not a and not b for a, b in itertools.pairwise(kinds))


def test_framing_and_placeholders_are_control_and_nothing_else_is() -> None:
    prompt = render([Message("user", (TextPart("<|eot|>"), ImagePart(1)))])
    assert Segment("<|eot|>") in prompt.segments
    assert Segment("<|patch|>", "image", 1) in prompt.segments
    assert {s.text for s in prompt if s.control} <= set(wire.CONTROL)


@pytest.mark.parametrize("missing", [wire.EOT, wire.START, wire.BEGIN_OF_TEXT])
def test_a_missing_special_token_is_refused_by_name(tokenizer: Tokenizer, missing: str) -> None:
    with pytest.raises(RenderError, match="legacy=True") as refused:
        render(HELLO).token_ids(without(tokenizer, missing))
    assert missing in str(refused.value)


def test_legacy_spells_framing_as_the_library_spells_text(tokenizer: Tokenizer) -> None:
    legacy = without(tokenizer, *wire.CONTROL)
    prompt = render(HELLO)
    expected = legacy.encode(prompt.text(), add_special_tokens=False).ids
    assert prompt.token_ids(legacy, legacy=True) == expected


def test_legacy_uses_the_special_tokens_that_exist(tokenizer: Tokenizer) -> None:
    prompt = render(HELLO)
    assert prompt.token_ids(tokenizer, legacy=True) == prompt.token_ids(tokenizer)


def test_legacy_can_t_spell_a_placeholder(tokenizer: Tokenizer) -> None:
    prompt = render([Message("user", (ImagePart(),))])
    with pytest.raises(RenderError, match="patch"):
        prompt.token_ids(without(tokenizer, wire.PATCH), legacy=True)


def test_a_lone_surrogate_renders_as_text_and_has_no_ids(tokenizer: Tokenizer) -> None:
    prompt = render([Message("user", "\ud800")])
    assert "\ud800" in prompt.text()
    with pytest.raises(TokenError, match="surrogate"):
        prompt.token_ids(tokenizer)


def test_options_that_can_t_work_are_refused() -> None:
    with pytest.raises(OptionError, match="recipients"):
        render(HELLO, recipients="all")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="add_generation_prompt"):
        render(HELLO, channel="self", add_generation_prompt=False)


@pytest.mark.parametrize("given", [("a", "b"), (Text("a"), TextPart("b")), ["a", Text("b")], "ab"])
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_strings_among_parts_are_text(role: str, given: object) -> None:
    message = Message(role, given)  # type: ignore[arg-type]
    assert render([message]) == render([Message(role, "ab")])  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [(5,), ("a", None), ({"type": "text", "text": "a"},), 5, None])
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_any_other_content_is_refused_with_what_is_accepted(role: str, given: object) -> None:
    with pytest.raises(RenderError, match=r"of message 1 .* TextPart, ImagePart and VideoPart"):
        render([Message("user", "x"), Message(role, given)])  # type: ignore[arg-type]


def test_another_part_of_a_chat_message_is_refused_with_what_is_accepted() -> None:
    with pytest.raises(RenderError, match=r"content\[1\] is a int; expected a string, a dict"):
        render([{"role": "user", "content": ["a", 5]}])
