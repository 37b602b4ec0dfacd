"""nano's tokenizer: what it must keep of any text, and what it must not cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizer as recipe
from conversations import STRENGTHS, system_block
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from atem import wire
from atem.runtime.embedded import located
from atem.testing.tiny import SPECIALS
from atem.tokenizer import wrap

FILE = Path(located("nano")) / "tokenizer.json"
BACKEND = Tokenizer.from_file(str(FILE))
TOKENIZER = wrap(BACKEND)
FRAMED = st.lists(st.sampled_from([*SPECIALS, *recipe.TAGS, *recipe.PARTS, " ", "\n", "é", "a"]))


def written(text: str) -> list[bytes]:
    return [TOKENIZER.token_bytes(token) for token in TOKENIZER.encode(text)]


def test_the_shipped_one_is_what_the_recipe_makes() -> None:
    assert json.loads(recipe.train(1).to_str()) == json.loads(FILE.read_text())


def test_it_has_1024_pieces_with_every_byte_and_the_named_specials() -> None:
    assert BACKEND.get_vocab_size() == 1024
    assert all(TOKENIZER.special_id(text) is not None for text in SPECIALS)
    single = {TOKENIZER.token_bytes(token) for token in range(1024)}
    assert {bytes([value]) for value in range(256)} <= single


@given(st.text() | FRAMED.map("".join))
def test_any_text_comes_back_byte_for_byte_and_none_of_it_is_special(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert b"".join(map(TOKENIZER.token_bytes, ids)) == text.encode()
    assert not any(map(TOKENIZER.is_special, ids))


@given(st.text() | FRAMED.map("".join))
def test_tokenizers_decodes_what_it_encoded(text: str) -> None:
    assert BACKEND.decode(TOKENIZER.encode(text), skip_special_tokens=False) == text


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("writes", [True, False])
def test_a_system_block_costs_at_most_130_tokens(strength: str, writes: bool) -> None:
    assert len(system_block(strength, writes=writes).token_ids(TOKENIZER)) <= 130


@pytest.mark.parametrize(
    "tag",
    [
        wire.BLOCK_OPEN, wire.BLOCK_CLOSE, wire.INVOKE_CLOSE, wire.PARAMETER_CLOSE,
        wire.invoke_open("read_file"), wire.parameter_open("path"),
    ],
)  # fmt: skip
def test_each_tag_is_two_pieces_or_more(tag: str) -> None:
    assert len(written(tag)) >= 2
    assert len(written(f"\n{tag}\n")) >= 3


@pytest.mark.parametrize("name", ["harbour.txt", "qouzi-77.md", "b/c_d.json"])
def test_a_name_has_the_same_pieces_wherever_it_stands(name: str) -> None:
    alone = written(name)
    for before, after in [("read ", ", please"), ('">', "</atem:parameter>"), ("\n", "\n")]:
        assert written(before + name + after)[-len(alone) - len(written(after)) :] == [
            *alone, *written(after),
        ]  # fmt: skip


def test_digits_stand_alone() -> None:
    assert written("12 + 345") == [b"1", b"2", b" ", b"+", b" ", b"3", b"4", b"5"]
