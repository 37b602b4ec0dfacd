"""Which tokenizer a checkpoint has, and where its generations stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tokenizers import Tokenizer, models

from atem import wire
from atem.errors import CheckpointError, ConfigError
from atem.runtime.tokens import load_tokenizer, missing_specials, stop_ids
from atem.testing.tiny import SPECIALS, VOCABULARY, tiny_tokenizer, write_side_files
from atem.tokenizer import wrap
from tests.parser.tokens import byte_tokenizer
from tests.runtime.tokens.vocabularies import checkpoint, metadata, trained

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TINY = wrap(tiny_tokenizer())
END, EOT, EOM = (TINY.special_id(text) for text in (wire.END_OF_TEXT, wire.EOT, wire.EOM))
NAMED = {END, EOT}


def test_tokenizer_json_is_read(tmp_path: Path) -> None:
    write_side_files(tmp_path)
    tokenizer = load_tokenizer(checkpoint(VOCABULARY, tokenizer=tmp_path / "tokenizer.json"))
    text = "to=self atem 🙂"
    assert tokenizer.encode(text) == tiny_tokenizer().encode(text, add_special_tokens=False).ids
    assert [tokenizer.special_id(text) for text in SPECIALS] == list(map(TINY.special_id, SPECIALS))


def test_a_gguf_file_s_own_tokenizer_is_built() -> None:
    backend = trained("llama4")
    tokenizer = load_tokenizer(checkpoint(gguf=metadata(backend, "llama4")))
    assert tokenizer.special_id("<|eot|>") == backend.token_to_id("<|eot|>")


def test_tokenizer_json_goes_before_the_gguf_file_s_own(tmp_path: Path) -> None:
    write_side_files(tmp_path)
    tokenizer = load_tokenizer(
        checkpoint(
            tokenizer=tmp_path / "tokenizer.json", gguf=metadata(trained("llama4"), "llama4")
        )
    )
    assert tokenizer.special_id("<|eot|>") == EOT


def test_without_a_tokenizer_the_missing_file_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"some\.gguf: no tokenizer\.json"):
        load_tokenizer(checkpoint())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}', "\x00"])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_tokenizer(checkpoint(tokenizer=path))


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_side_files(tmp_path)
    monkeypatch.setattr("atem.runtime.tokens.MAX_FILE", 100)
    with pytest.raises(CheckpointError, match="100 are the limit"):
        load_tokenizer(checkpoint(tokenizer=tmp_path / "tokenizer.json"))


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The tiny ``tokenizer.json`` after ``change``."""
    write_side_files(folder)
    path = folder / "tokenizer.json"
    spec = json.loads(path.read_text())
    change(spec)
    path.write_text(json.dumps(spec))
    return path


CHANGES_OF_IDS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a token is missing before others": lambda spec: spec["added_tokens"].pop(2),
    "the vocabulary has a gap": lambda spec: spec["model"]["vocab"].update(zz=300),
    "two pieces have one id": lambda spec: spec["model"]["vocab"].update(zz=0),
    "a token stands there twice": lambda spec: spec["added_tokens"].append(
        spec["added_tokens"][0] | {"id": 300}
    ),
}


@pytest.mark.parametrize("change", CHANGES_OF_IDS.values(), ids=CHANGES_OF_IDS)
def test_a_file_whose_ids_the_library_would_change_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    path = changed(tmp_path, change)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: .* has the id \d+, and"):
        load_tokenizer(checkpoint(VOCABULARY, tokenizer=path))


def test_a_key_twice_in_a_tokenizer_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda spec: None)
    path.write_text(path.read_text().replace('"added_tokens"', '"version": "1.0", "added_tokens"'))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_tokenizer(checkpoint(VOCABULARY, tokenizer=path))


def test_a_panic_of_the_library_is_a_checkpoint_error(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda spec: spec["model"].update(continuing_subword_prefix="##"))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: can't be read"):
        load_tokenizer(checkpoint(VOCABULARY, tokenizer=path))


def test_what_a_file_says_is_quoted_and_cut_in_messages(tmp_path: Path) -> None:
    odd = "\x1b[31m" * 999
    path = changed(tmp_path, lambda spec: spec["model"]["merges"].append([odd, "b"]))
    with pytest.raises(CheckpointError) as merge:
        load_tokenizer(checkpoint(VOCABULARY, tokenizer=path))
    with pytest.raises(ConfigError) as stop:
        stops(generation_config={"eos_token_id": [odd] * 99})
    with pytest.raises(CheckpointError) as split:
        load_tokenizer(checkpoint(gguf=metadata(trained("llama4"), odd)))
    for found in (merge, stop, split):
        assert str(found.value).isprintable()
        assert len(str(found.value)) < 1000


def test_a_tokenizer_of_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(path))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*byte-level"):
        load_tokenizer(checkpoint(tokenizer=path))


@pytest.mark.parametrize("source", ["file", "gguf"])
def test_a_vocabulary_beyond_the_model_s_is_refused(tmp_path: Path, source: str) -> None:
    write_side_files(tmp_path)
    files: dict[str, Any] = {
        "file": {"tokenizer": tmp_path / "tokenizer.json"},
        "gguf": {"gguf": metadata(trained("llama4"), "llama4")},
    }[source]
    size = {
        "file": tiny_tokenizer().get_vocab_size(with_added_tokens=True),
        "gguf": trained("llama4").get_vocab_size(with_added_tokens=True),
    }[source]
    load_tokenizer(checkpoint(size, **files))
    with pytest.raises(CheckpointError, match=f"highest id is {size - 1}"):
        load_tokenizer(checkpoint(size - 1, **files))


@pytest.mark.parametrize("absent", wire.REQUIRED_SPECIALS)
def test_framing_that_is_no_special_token_is_named(absent: str) -> None:
    others = [text for text in wire.FRAMING if text != absent]
    assert missing_specials(wrap(byte_tokenizer(*others))) == (absent,)
    assert missing_specials(TINY) == ()


# ---- Stop ids ------------------------------------------------------------------------------


def stops(**files: Any) -> frozenset[int]:
    return stop_ids(TINY, checkpoint(VOCABULARY, **files))


def test_both_ends_of_a_turn_stop_without_any_checkpoint() -> None:
    assert stop_ids(TINY, None) == NAMED


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, NAMED),
        ({"generation_config": {"eos_token_id": END}}, NAMED),
        ({"generation_config": {"eos_token_id": [END, 5]}}, NAMED | {5}),
        ({"generation_config": {"eos_token_id": None}}, NAMED),
        ({"gguf": {"tokenizer.ggml.eos_token_id": 6}}, NAMED | {6}),
        ({"gguf": {"tokenizer.ggml.eot_token_id": 7}}, NAMED | {7}),
        ({"gguf": {"tokenizer.ggml.eom_token_id": 8}}, NAMED),
        ({"tokenizer_config": {"eos_token": "<|finetune_right_pad|>"}},
         NAMED | {TINY.special_id("<|finetune_right_pad|>")}),
        ({"tokenizer_config": {"eos_token": {"content": "<|eom|>"}}}, NAMED),
        ({"tokenizer_config": {"eos_token": "</s>"}}, NAMED),
    ],
)  # fmt: skip
def test_declared_ends_come_to_the_named_ones(files: Any, wanted: set[int]) -> None:
    assert stops(**files) == wanted


@pytest.mark.parametrize("declared", [EOM, [END, EOM]])
def test_the_end_of_a_message_never_stops_whoever_declares_it(declared: Any) -> None:
    assert stops(generation_config={"eos_token_id": declared}) == NAMED
    assert stops(gguf={"tokenizer.ggml.eos_token_id": EOM}) == NAMED


@pytest.mark.parametrize("bad", [True, -1, VOCABULARY, "200001", 1.0, [1, None], {"id": 1}])
def test_a_declared_end_that_is_no_id_is_refused_with_its_place(bad: Any) -> None:
    with pytest.raises(ConfigError, match=r"generation_config\.json: eos_token_id"):
        stops(generation_config={"eos_token_id": bad})
    with pytest.raises(ConfigError, match=r"tokenizer\.ggml\.eot_token_id"):
        stops(gguf={"tokenizer.ggml.eot_token_id": bad})


def test_a_generation_that_could_never_end_is_refused() -> None:
    bare = wrap(byte_tokenizer())
    with pytest.raises(ConfigError, match="no id ends a generation"):
        stop_ids(bare, None)
    assert stop_ids(bare, checkpoint(generation_config={"eos_token_id": 3})) == {3}
