"""The tokenizer in a GGUF file: the one it was written from, and transformers' reading of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer

from atem import wire
from atem.errors import CheckpointError
from atem.runtime.gguf_tokenizer import build
from atem.testing.tiny import SPECIALS
from atem.tokenizer import wrap
from tests.runtime.tokens.vocabularies import (
    CONTROL,
    CORPUS,
    PRES,
    UNUSED,
    USER_DEFINED,
    metadata,
    trained,
)

texts = st.lists(
    st.text(max_size=4) | st.sampled_from(" ".join(CORPUS).split(" ")) | st.sampled_from(SPECIALS),
    max_size=12,
).map(" ".join)


@cache
def built(pre: str) -> Any:
    return build(metadata(trained(pre), pre))


@cache
def library(pre: str) -> Any:
    """transformers' tokenizer of the same metadata."""
    given_data = metadata(trained(pre), pre)
    names = {"model": "tokenizer_type", "pre": "pre_tokenizer_type"}
    keys = ("model", "pre", "tokens", "token_type", "merges")
    read = {names.get(key, key): given_data[f"tokenizer.ggml.{key}"] for key in keys}
    return convert_gguf_tokenizer("muse-glimmer", read)[0]


@pytest.mark.parametrize("pre", PRES)
@given(text=texts)
def test_it_encodes_as_what_it_was_written_from_and_as_transformers_reads_it(
    pre: str, text: str
) -> None:
    ids = built(pre).encode(text, add_special_tokens=False).ids
    assert ids == trained(pre).encode(text, add_special_tokens=False).ids
    assert ids == library(pre).encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("pre", PRES)
@given(text=texts)
def test_text_never_becomes_a_control_token(pre: str, text: str) -> None:
    tokenizer = wrap(built(pre))
    ids = tokenizer.encode(text)
    assert not any(map(tokenizer.is_special, ids))
    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == text


def test_the_splits_differ_so_that_a_wrong_one_would_show() -> None:
    text = "HELLO World's"
    assert built("llama4").pre_tokenizer.pre_tokenize_str(text) != (
        built("llama-bpe").pre_tokenizer.pre_tokenize_str(text)
    )


@pytest.mark.parametrize("pre", PRES)
def test_every_id_is_the_place_in_the_list_and_control_tokens_are_special(pre: str) -> None:
    given_data = metadata(trained(pre), pre)
    tokenizer = wrap(built(pre))
    for place, token in enumerate(given_data["tokenizer.ggml.tokens"]):
        assert built(pre).token_to_id(token) == place
        assert tokenizer.is_special(place) is (token in SPECIALS)
    assert {tokenizer.special_id(text) for text in wire.CONTROL} <= set(range(place + 1))


def test_special_tokens_may_stand_anywhere_in_the_list() -> None:
    given_data = metadata(trained("llama4"), "llama4")
    rotated = {
        key: value[-20:] + value[:-20] if key.endswith(("tokens", "token_type")) else value
        for key, value in given_data.items()
    }
    tokens = rotated["tokenizer.ggml.tokens"]
    tokenizer = wrap(build(rotated))
    assert [tokenizer.special_id(text) for text in SPECIALS] == list(map(tokens.index, SPECIALS))
    text = CORPUS[0]
    plain = [tokens[number] for number in tokenizer.encode(text)]
    assert plain == trained("llama4").encode(text, add_special_tokens=False).tokens


def test_padding_and_user_defined_tokens_keep_their_ids_and_are_not_special() -> None:
    given_data = metadata(trained("llama4"), "llama4")
    size = len(given_data["tokenizer.ggml.tokens"])
    given_data["tokenizer.ggml.tokens"] += ["[PAD 7]", "<|mine: ä|>"]
    given_data["tokenizer.ggml.token_type"] += [UNUSED, USER_DEFINED]
    tokenizer = wrap(build(given_data))
    assert tokenizer.token_bytes(size) == b"[PAD 7]"
    assert tokenizer.token_bytes(size + 1) == "<|mine: ä|>".encode()
    assert not tokenizer.is_special(size)
    assert not tokenizer.is_special(size + 1)
    text = "[PAD 7] <|mine: ä|>"
    assert max(tokenizer.encode(text)) < size


REFUSED = [
    ("model", "llama", "byte-level"),
    ("model", None, "byte-level"),
    ("pre", "qwen2", "llama4, gpt-4o, llama-bpe"),
    ("pre", None, "llama4"),
    ("pre", ["llama4"], "llama4"),
    ("tokens", None, "list of"),
    ("tokens", [], "list of"),
    ("tokens", ["a", 7], r"\[1\] is 7"),
    ("tokens", ["a", ""], r"\[1\]"),
    ("token_type", None, "special tokens"),
    ("token_type", [1, 3], "as long as"),
    ("merges", None, "list of"),
    ("merges", ["ab"], "two tokens"),
    ("merges", ["a b c"], "two tokens"),
    ("merges", [" b"], "two tokens"),
    ("merges", ["a 東"], "doesn't fit"),
]


@pytest.mark.parametrize(("key", "value", "words"), REFUSED)
def test_what_can_not_be_is_refused_by_its_key(key: str, value: Any, words: str) -> None:
    with pytest.raises(CheckpointError, match=words) as error:
        build(metadata(trained("llama4"), "llama4", **{key: value}))
    assert f"tokenizer.ggml.{key}" in str(error.value)


@pytest.mark.parametrize("kind", [0, 7, True, 1.0, "3"])
def test_a_type_that_does_not_exist_is_refused(kind: Any) -> None:
    given_data = metadata(trained("llama4"), "llama4")
    given_data["tokenizer.ggml.token_type"][5] = kind
    with pytest.raises(CheckpointError, match="from 1 to 6"):
        build(given_data)


def test_a_token_that_stands_there_twice_is_refused() -> None:
    given_data = metadata(trained("llama4"), "llama4")
    given_data["tokenizer.ggml.tokens"][9] = given_data["tokenizer.ggml.tokens"][8]
    with pytest.raises(CheckpointError, match="twice"):
        build(given_data)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atem.runtime.gguf_tokenizer.MAX_TOKENS", 300)
    with pytest.raises(CheckpointError, match="1 to 300"):
        build(metadata(trained("llama4"), "llama4"))


def test_a_beginning_of_text_is_never_added() -> None:
    given_data = metadata(trained("llama4"), "llama4", add_bos_token=True)
    ids = build(given_data).encode("Hi", add_special_tokens=True).ids
    assert given_data["tokenizer.ggml.bos_token_id"] not in ids


def test_control_tokens_are_matched_whole_where_the_library_is_asked_to() -> None:
    ids = built("llama4").encode("a<|eot|> b", add_special_tokens=False).ids
    assert built("llama4").token_to_id("<|eot|>") in ids
    assert CONTROL == 3
