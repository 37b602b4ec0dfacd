"""Folders: which files are read, and that they are where they seem to be."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from atem.errors import ConfigError, LayoutError, UnsafeCheckpoint
from atem.runtime import gate
from atem.runtime.layouts import open_checkpoint, shards
from atem.testing.tiny import hf_config, tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.layouts import writers

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = tiny_config(num_hidden_layers=1)
WEIGHTS = tiny_weights(CONFIG)


@pytest.fixture
def folder(tmp_path):
    return tiny_checkpoint(tmp_path / "model", config=CONFIG)


@pytest.fixture
def sharded(tmp_path):
    tensors = writers.hf(CONFIG, WEIGHTS)
    return writers.save(tmp_path / "model", tensors, hf_config(CONFIG), shards=2)


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def notes(folder: Path) -> str:
    with open_checkpoint(folder) as checkpoint:
        return "\n".join(checkpoint.notes)


def test_no_folder_and_no_config_are_told_apart(tmp_path):
    with pytest.raises(LayoutError, match=r"does not exist.*\.gguf.*nothing is downloaded"):
        open_checkpoint(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"no config\.json"):
        open_checkpoint(tmp_path)


def test_a_path_that_leads_nowhere_is_no_checkpoint(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for path in (tmp_path / "circle", f"{tmp_path}/a\0b"):
        with pytest.raises(LayoutError, match="can't be followed"):
            open_checkpoint(path)


ODD = "\x1b[31m\udcff"


def test_odd_names_are_quoted_in_messages_and_notes(folder):
    (folder / f"{ODD}.bin").touch()
    assert notes(folder).isprintable()
    (folder / "model.safetensors").rename(folder / f"{ODD}.pt")
    with pytest.raises(UnsafeCheckpoint) as pickles:
        open_checkpoint(folder)
    for name in "ab":
        (folder / f"{ODD}{name}.safetensors").touch()
    with pytest.raises(LayoutError) as sets:
        open_checkpoint(folder)
    assert str(pickles.value).isprintable()
    assert str(sets.value).isprintable()


def test_odd_names_in_an_index_are_quoted_and_cut(folder):
    index = {"weight_map": {f"{ODD}{'x' * 9999}": "model.safetensors"}}
    (folder / shards.INDEX).write_text(json.dumps(index))
    with pytest.raises(LayoutError, match="no shard has") as refused:
        open_checkpoint(folder)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


def test_a_file_that_is_no_gguf_is_no_checkpoint(folder):
    with pytest.raises(LayoutError, match="folder"):
        open_checkpoint(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[]", "not a JSON object but list"),
        (b"null", "not a JSON object but NoneType"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": 1, "a": 2}', "'a' appears twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_a_configuration_must_be_one_json_object(folder, text, said):
    (folder / "config.json").write_bytes(text)
    with pytest.raises(ConfigError, match=said) as caught:
        open_checkpoint(folder)
    assert "config.json" in str(caught.value)


def test_a_json_file_has_a_largest_size(folder):
    with (folder / "generation_config.json").open("r+b") as file:
        file.truncate(gate.MAX_JSON + 1)
    with pytest.raises(
        ConfigError, match=rf"generation_config\.json has {gate.MAX_JSON + 1} bytes"
    ):
        open_checkpoint(folder)


@pytest.mark.parametrize("value", ["", "/etc/passwd", "../code.py", "a/../../x.py", "C:\\x.py",
                                   "\\\\host\\x.py", "absent.py", 3, None, ["a.py"], "a\0.py"])  # fmt: skip
def test_a_model_file_that_is_no_path_into_the_folder_is_unsafe(folder, value):
    edit(folder / "config.json", model_file=value)
    with pytest.raises(UnsafeCheckpoint, match="model_file"):
        open_checkpoint(folder)


@pytest.mark.parametrize("value", ["../model/config.json", "x/../../model/config.json"])
def test_a_model_file_that_leaves_the_folder_and_comes_back_is_unsafe(folder, value):
    (folder / "x").mkdir()
    edit(folder / "config.json", model_file=value)
    with pytest.raises(UnsafeCheckpoint, match="not a plain relative path"):
        open_checkpoint(folder)


def test_a_model_file_behind_a_symlink_is_unsafe(folder, tmp_path):
    (tmp_path / "code.py").write_text("")
    (folder / "code.py").symlink_to(tmp_path / "code.py")
    edit(folder / "config.json", model_file="code.py")
    with pytest.raises(UnsafeCheckpoint, match=r"code\.py leads out"):
        open_checkpoint(folder)


def test_a_model_file_is_ignored_with_a_note_and_never_executed(folder, tmp_path):
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    edit(folder / "config.json", model_file="code.py")
    assert "'code.py' as model_file: it is ignored" in notes(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", gate.CODE_KEYS)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_other_keys_that_name_code_are_ignored_with_a_note(folder, name, key):
    edit(folder / name, **{key: {"AutoModel": "code.Model"}})
    assert f"{name} has {key}: it is ignored" in notes(folder)


@pytest.mark.parametrize("suffix", sorted(shards.PICKLES))
def test_a_folder_of_pickles_is_refused(folder, suffix):
    (folder / "model.safetensors").rename(folder / f"pytorch_model{suffix}")
    with pytest.raises(UnsafeCheckpoint, match=f"pytorch_model{suffix}.*Only safetensors and GGUF"):
        open_checkpoint(folder)


def test_pickles_beside_safetensors_are_left_alone_with_a_note(folder):
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    assert "not read: pytorch_model.bin" in notes(folder)


def test_a_folder_without_weights_says_so(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(LayoutError, match="no weights"):
        open_checkpoint(folder)


@pytest.mark.parametrize("shard", ["../model.safetensors", "/m.safetensors", "a/b.safetensors",
                                   "..", "", "c:m.safetensors", "a\\b", None, 3, ["x"]])  # fmt: skip
def test_a_shard_that_is_no_plain_file_name_is_unsafe(sharded, shard):
    index = sharded / shards.INDEX
    places = json.loads(index.read_text())["weight_map"]
    edit(index, weight_map=places | {"lm_head.weight": shard})
    with pytest.raises(UnsafeCheckpoint, match=r"lm_head\.weight"):
        open_checkpoint(sharded)


@pytest.mark.parametrize("entries", [None, {}, [], "x"])
def test_an_index_without_a_map_is_refused(sharded, entries):
    edit(sharded / shards.INDEX, weight_map=entries)
    with pytest.raises(LayoutError, match="weight_map"):
        open_checkpoint(sharded)


def test_a_missing_shard_is_named(sharded):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(LayoutError, match=r"model-00002-of-00002\.safetensors' is missing"):
        open_checkpoint(sharded)


def test_a_missing_shard_is_noticed_without_an_index(sharded):
    (sharded / shards.INDEX).unlink()
    (sharded / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(LayoutError, match="numbered set"):
        open_checkpoint(sharded)


def test_a_tensor_in_two_shards_is_an_error(sharded):
    one, two = (sharded / f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
    two.write_bytes(one.read_bytes())
    with pytest.raises(LayoutError, match="is in two shards"):
        open_checkpoint(sharded)


def test_a_tensor_that_is_in_no_shard_is_named(sharded):
    index = sharded / shards.INDEX
    places = json.loads(index.read_text())["weight_map"]
    edit(index, weight_map=places | {"more.weight": places["lm_head.weight"]})
    with pytest.raises(LayoutError, match=r"1 tensors that no shard has \(more\.weight\)"):
        open_checkpoint(sharded)


def test_a_single_file_and_an_index_that_leaves_it_out_are_refused(sharded, folder):
    (sharded / shards.SINGLE).write_bytes(b"")
    with pytest.raises(LayoutError, match="index without it"):
        open_checkpoint(sharded)


def test_files_of_two_sets_without_an_index_are_refused(sharded):
    (sharded / shards.INDEX).unlink()
    (sharded / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(LayoutError, match="numbered set"):
        open_checkpoint(sharded)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_symlink_out_of_the_folder_is_unsafe(folder, tmp_path, name):
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(UnsafeCheckpoint, match="leads out of its folder"):
        open_checkpoint(folder)


def test_a_symlink_inside_the_folder_is_followed(folder):
    (folder / "model.safetensors").rename(folder / "weights")
    (folder / "model.safetensors").symlink_to("weights")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.layout == "hf"


def test_the_folder_itself_may_be_a_symlink(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with open_checkpoint(tmp_path / "link") as checkpoint:
        assert checkpoint.path == tmp_path / "link"
        assert checkpoint.files.tokenizer == folder.resolve() / "tokenizer.json"


def cached(folder: Path, cache: Path, blobs: Path) -> Path:
    """``folder`` as Hugging Face's cache keeps it: names that lead to blobs."""
    snapshot = cache / "models--meta--glimmer" / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    blobs.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(blobs / f"{number:064x}")
        (snapshot / file.name).symlink_to(os.path.relpath(blobs / f"{number:064x}", snapshot))
    return snapshot


def test_links_of_a_cache_lead_to_the_blobs_of_the_same_model(folder, tmp_path):
    snapshot = cached(folder, tmp_path, tmp_path / "models--meta--glimmer" / "blobs")
    with open_checkpoint(snapshot) as checkpoint:
        assert checkpoint.layout == "hf"


def test_a_folder_inside_a_snapshot_leads_to_the_blobs_too(folder, tmp_path):
    blobs = tmp_path / "models--meta--glimmer" / "blobs"
    snapshot = cached(folder, tmp_path, blobs)
    (snapshot / "Q4").mkdir()
    for link in snapshot.glob("*.json"):
        (snapshot / "Q4" / link.name).symlink_to(link.resolve())
    weights = (snapshot / "model.safetensors").resolve()
    (snapshot / "Q4" / "model.safetensors").symlink_to(weights)
    assert "not read" not in notes(snapshot / "Q4")


def test_links_of_a_cache_to_another_model_are_unsafe(folder, tmp_path):
    snapshot = cached(folder, tmp_path, tmp_path / "models--else--other" / "blobs")
    with pytest.raises(UnsafeCheckpoint, match="leads out"):
        open_checkpoint(snapshot)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json",
                                  "chat_template.jinja", "generation_config.json"])  # fmt: skip
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"),
                                  lambda path: path.symlink_to(path.name)])  # fmt: skip
def test_what_is_no_regular_file_is_never_opened(folder, name, make):
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    with pytest.raises(UnsafeCheckpoint):
        open_checkpoint(folder)


def test_side_files_are_found(folder):
    (folder / "chat_template.jinja").write_text("{{ bos_token }}")
    with open_checkpoint(folder) as checkpoint:
        files = checkpoint.files
    assert files.chat_template == "{{ bos_token }}"
    assert files.generation_config["top_p"] == 0.95
    assert files.tokenizer_config["eos_token"] == "<|end_of_text|>"


TEMPLATES = [
    ("t", "t"),
    ([{"name": "tool_use", "template": "u"}, {"name": "default", "template": "t"}], "t"),
    ([{"name": ["default"], "template": "u"}, "x"], None),
    (3, None),
    (None, None),
]


@pytest.mark.parametrize(("value", "template"), TEMPLATES)
def test_a_template_may_stand_in_the_tokenizer_configuration(folder, value, template):
    edit(folder / "tokenizer_config.json", chat_template=value)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.files.chat_template == template
