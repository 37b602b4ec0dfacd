"""The tokenizer adapter: bytes of ids, what is special, and text that can't become control."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import trainers as train

from atem import wire
from atem.errors import OptionError, TokenError
from atem.tokenizer import ByteLevelTokenizer, byte_table, wrap

CORPUS = [
    "The quick brown fox reads a file to=self and writes <|eot|> or <|start|>assistant to=read.",
    "<atem:function_calls> <atem:invoke name='x'> naïve café 東京 🙂 <|patch|> <|message|>",
] * 20
PIECES = [*wire.CONTROL, "<|vid_start|>", "<|", "|>", "eot", "start", " ", "\n", "é", "🙂", "a"]


def trained(*, special: bool = True, regex: bool = True, normalizer: Any = None) -> Tokenizer:
    """A byte-level BPE trained here, with the control tokens added behind its vocabulary."""
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    tok.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(CORPUS, train.BpeTrainer(vocab_size=450, initial_alphabet=alphabet))
    if normalizer is not None:
        tok.normalizer = normalizer
    extra = [*wire.CONTROL, "<|vid_start|>"]
    tok.add_tokens([AddedToken(t, special=special, normalized=False) for t in extra])
    return tok


def with_specials_in_the_vocabulary() -> Tokenizer:
    """As trainers build it: specials are also entries of the base vocabulary."""
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.decoder = decoders.ByteLevel()
    trainer = train.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(wire.CONTROL),
    )
    tok.train_from_iterator(CORPUS, trainer)
    return tok


def with_specials_learned_by_merges() -> Tokenizer:
    """Control literals that the model itself learned, and that were made special afterwards."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = train.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet)
    tok.train_from_iterator(list(wire.CONTROL) * 50, trainer)
    assert set(wire.CONTROL) <= set(tok.get_vocab())
    tok.add_special_tokens(list(wire.CONTROL))
    return tok


VARIANTS = {
    "flagged special": trained(),
    "flagged non-special": trained(special=False),
    "no pre-tokenizer regex": trained(regex=False),
    "specials in the vocabulary": with_specials_in_the_vocabulary(),
    "specials learned by merges": with_specials_learned_by_merges(),
    "with a normalizer": trained(normalizer=normalizers.NFKC()),
}
WRAPPED = {name: wrap(tok) for name, tok in VARIANTS.items()}


@pytest.fixture(params=VARIANTS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def spelled(name: str, ids: list[int]) -> str:
    return b"".join(map(WRAPPED[name].token_bytes, ids)).decode()


@pytest.mark.parametrize("variant", VARIANTS)
@given(text=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
def test_text_never_becomes_an_added_token_and_decodes_to_itself(variant: str, text: str) -> None:
    ids = WRAPPED[variant].encode(text)
    assert spelled(variant, ids) == text
    assert not set(ids) & set(VARIANTS[variant].get_added_tokens_decoder())


@pytest.mark.parametrize("literal", wire.CONTROL)
def test_a_control_literal_as_text_is_ordinary_pieces(name: str, literal: str) -> None:
    tokenizer = WRAPPED[name]
    ids = tokenizer.encode(literal)
    assert len(ids) > 1
    assert not any(map(tokenizer.is_special, ids))


@pytest.mark.parametrize("literal", wire.CONTROL)
def test_a_control_literal_is_one_special_token_whatever_its_flag(name: str, literal: str) -> None:
    token_id = WRAPPED[name].special_id(literal)
    assert token_id is not None
    assert token_id == VARIANTS[name].token_to_id(literal)
    assert WRAPPED[name].is_special(token_id)
    assert WRAPPED[name].token_bytes(token_id) == literal.encode()


def test_an_added_token_that_is_not_flagged_and_not_control_is_not_special() -> None:
    assert WRAPPED["flagged special"].special_id("<|vid_start|>") is not None
    assert WRAPPED["flagged non-special"].special_id("<|vid_start|>") is None


def test_text_that_is_no_special_token_has_no_special_id(name: str) -> None:
    assert WRAPPED[name].special_id("a") is None
    assert WRAPPED[name].special_id("<|eot|><|eot|>") is None


def test_ordinary_text_gets_the_ids_that_the_library_gives() -> None:
    text = "The quick brown fox reads a file, naïve café 東京."
    expected = VARIANTS["flagged special"].encode(text, add_special_tokens=False).ids
    assert WRAPPED["flagged special"].encode(text) == expected


def test_the_byte_table_is_the_library_s_alphabet() -> None:
    assert set(byte_table()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(byte_table().values()) == list(range(256))


@given(text=st.text())
def test_token_bytes_join_to_what_the_library_decodes(text: str) -> None:
    library = VARIANTS["flagged special"]
    ids = library.encode(text, add_special_tokens=False).ids
    assert spelled("flagged special", ids) == library.decode(ids, skip_special_tokens=False)


def test_a_token_may_be_half_a_character() -> None:
    tokenizer = WRAPPED["flagged special"]
    pieces = list(map(tokenizer.token_bytes, tokenizer.encode("𓂀")))
    assert len(pieces) > 1
    assert b"".join(pieces).decode() == "𓂀"


def test_a_vocabulary_entry_that_is_no_byte_text_is_its_utf_8_as_in_the_library() -> None:
    tok = Tokenizer(models.BPE({"a": 0, "日": 1}, []))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    assert wrap(tok).token_bytes(1).decode() == tok.decode([1]) == "日"


@pytest.mark.parametrize("token_id", [10**6, -1, 2**40])
def test_an_unknown_id_is_a_token_error(token_id: int) -> None:
    with pytest.raises(TokenError, match=str(token_id)):
        WRAPPED["flagged special"].token_bytes(token_id)
    assert not WRAPPED["flagged special"].is_special(token_id)


def test_the_caller_s_tokenizer_is_not_changed(name: str) -> None:
    before = VARIANTS[name].to_str()
    wrap(VARIANTS[name]).encode("<|eot|> text")
    assert VARIANTS[name].to_str() == before
    assert VARIANTS[name].encode_special_tokens is False


def test_a_prefix_space_of_the_export_is_not_written() -> None:
    tok = trained()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(add_prefix_space=True)]
    )
    wrapped = wrap(tok)
    assert b"".join(map(wrapped.token_bytes, wrapped.encode("fox 12"))) == b"fox 12"


def test_a_vocabulary_that_lacks_bytes_refuses_what_it_can_t_spell() -> None:
    tok = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert wrap(tok).encode("ab") == [0, 1]
    with pytest.raises(TokenError, match="lacks single bytes"):
        wrap(tok).encode("abc")


def test_a_lone_surrogate_is_a_token_error_that_says_where() -> None:
    with pytest.raises(TokenError, match="character 2"):
        WRAPPED["flagged special"].encode("ab\ud800")


@pytest.mark.parametrize(
    "tok",
    [
        Tokenizer(models.WordLevel({"a": 0}, unk_token="a")),
        Tokenizer(models.BPE({"a": 0}, [])),
        "tokenizer.json",
    ],
    ids=["word level", "BPE without bytes", "a path"],
)
def test_what_is_not_byte_level_is_refused_with_what_is_supported(tok: object) -> None:
    with pytest.raises(OptionError, match="supported: "):
        wrap(tok)


def test_a_byte_level_model_with_another_decoder_is_refused() -> None:
    tok = trained()
    tok.decoder = decoders.WordPiece()
    with pytest.raises(OptionError, match="WordPiece"):
        wrap(tok)


def test_a_fast_tokenizer_is_read_through_its_backend() -> None:
    fast = SimpleNamespace(backend_tokenizer=trained())
    assert wrap(fast).special_id(wire.EOT) == trained().token_to_id(wire.EOT)


def test_an_object_that_has_the_methods_is_returned_as_it_is() -> None:
    own = WRAPPED["flagged special"]
    assert isinstance(own, ByteLevelTokenizer)
    assert wrap(own) is own


def test_merges_written_as_strings_are_read_too() -> None:
    class OldExport:
        """The JSON form of older files, where a merge is one string with a space."""

        def __init__(self, inner: Tokenizer) -> None:
            self.inner = inner
            self.id_to_token = inner.id_to_token
            self.get_added_tokens_decoder = inner.get_added_tokens_decoder

        def to_str(self) -> str:
            spec = json.loads(self.inner.to_str())
            spec["model"]["merges"] = [" ".join(merge) for merge in spec["model"]["merges"]]
            return json.dumps(spec)

        def encode(self, text: str, add_special_tokens: bool) -> Any:
            return self.inner.encode(text, add_special_tokens=add_special_tokens)

        @classmethod
        def from_str(cls, text: str) -> OldExport:
            return cls(Tokenizer.from_str(text))

    text = "The quick brown fox <|eot|>"
    assert wrap(OldExport(trained())).encode(text) == WRAPPED["flagged special"].encode(text)


def rewritten(change: Any) -> Tokenizer:
    """A trained tokenizer after ``change`` of its JSON form."""
    spec = json.loads(trained().to_str())
    change(spec)
    return Tokenizer.from_str(json.dumps(spec))


def test_ids_are_never_drawn_by_chance() -> None:
    by_chance = wrap(rewritten(lambda spec: spec["model"].update(dropout=0.9)))
    assert by_chance.encode(CORPUS[0]) == WRAPPED["flagged special"].encode(CORPUS[0])


def test_a_pattern_that_gives_up_is_a_token_error() -> None:
    def hopeless(spec: dict[str, Any]) -> None:
        split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated"}
        parts = [split | {"invert": False}, spec["pre_tokenizer"]]
        spec["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}

    with pytest.raises(TokenError, match="fails on the text"):
        wrap(rewritten(hopeless)).encode("a" * 40)
