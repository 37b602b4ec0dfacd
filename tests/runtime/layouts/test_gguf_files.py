"""Which GGUF file a path means, files in parts, and what lies beside them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import gguf
import numpy as np
import pytest

from atem.errors import CheckpointError, ConfigError, LayoutError, UnsafeCheckpoint
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import (
    hf_config,
    tiny_checkpoint,
    tiny_config,
    tiny_weights,
    write_side_files,
)
from tests.runtime.layouts.gguf_writer import write_gguf

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = tiny_config()
WEIGHTS = tiny_weights(CONFIG)
TEMPLATE = "{{ messages }} from the file"


def write(folder: Path, name: str = "tiny.gguf", **options: object) -> Path:
    folder.mkdir(exist_ok=True)
    return write_gguf(folder / name, CONFIG, WEIGHTS, **options)  # type: ignore[arg-type]


def refusal(path: Path, kind: type[CheckpointError] = LayoutError) -> str:
    with pytest.raises(kind) as error:
        open_checkpoint(path)
    return str(error.value)


def test_a_folder_with_one_file_means_that_file(tmp_path: Path) -> None:
    write(tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.layout == "gguf"
    np.testing.assert_array_equal(checkpoint.read("embed"), WEIGHTS["embed"])


def test_a_file_is_known_by_its_magic_whatever_it_is_called(tmp_path: Path) -> None:
    path = write(tmp_path).rename(tmp_path / "sha256-0123")
    assert open_checkpoint(path).layout == "gguf"


def test_vision_and_drafter_beside_the_model_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "a-mmproj-f16.gguf", architecture="clip")
    write(tmp_path, "z-dflash.gguf", architecture="dflash")
    assert open_checkpoint(tmp_path).layout == "gguf"


def test_several_models_are_listed_and_none_is_chosen(tmp_path: Path) -> None:
    write(tmp_path, "m-Q4_K_M.gguf")
    write(tmp_path, "m-Q8_0.gguf")
    write(tmp_path, "mmproj.gguf", architecture="clip")
    message = refusal(tmp_path)
    assert "m-Q4_K_M.gguf" in message
    assert "m-Q8_0.gguf" in message
    assert "mmproj" not in message


def test_several_files_without_a_model_are_listed_with_what_they_are(tmp_path: Path) -> None:
    write(tmp_path, "a.gguf", architecture="clip")
    write(tmp_path, "b.gguf", architecture="llama")
    message = refusal(tmp_path)
    assert "a.gguf ('clip')" in message
    assert "b.gguf ('llama')" in message


def test_a_vision_file_alone_is_told_apart_from_a_model(tmp_path: Path) -> None:
    write(tmp_path, "mmproj.gguf", architecture="clip")
    assert "vision" in refusal(tmp_path)


def test_safetensors_in_the_folder_are_what_the_folder_means(tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path)
    path = write(tmp_path)
    assert open_checkpoint(tmp_path).layout == "hf"
    assert open_checkpoint(path).layout == "gguf"


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "real")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "m.gguf"
    link.symlink_to(path)
    for where in (link, link.parent):
        assert "leads out of its folder" in refusal(where, UnsafeCheckpoint)


def test_a_link_into_the_blobs_of_a_hub_cache_is_followed(tmp_path: Path) -> None:
    model = tmp_path / "models--some--one"
    (model / "snapshots" / "abc").mkdir(parents=True)
    shutil.move(write(tmp_path), (model / "blobs").mkdir() or model / "blobs" / "0123")
    link = model / "snapshots" / "abc" / "m.gguf"
    link.symlink_to(model / "blobs" / "0123")
    assert open_checkpoint(link).config == open_checkpoint(link.parent).config


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no GGUF file"])
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert "m.gguf" in refusal(path, CheckpointError)


def test_a_file_without_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + bytes(16))
    assert "no metadata" in refusal(path)


# -- parts ---------------------------------------------------------------------------


def test_a_file_in_parts_is_read_as_one_by_any_of_them(tmp_path: Path) -> None:
    write(tmp_path, split=30)
    parts = sorted(tmp_path.iterdir())
    assert [part.name for part in parts][:2] == [
        "tiny-00001-of-00003.gguf",
        "tiny-00002-of-00003.gguf",
    ]
    for path in (tmp_path, *parts):
        checkpoint = open_checkpoint(path)
        for name in ("embed", "layers.3.v", "head"):
            np.testing.assert_array_equal(checkpoint.read(name), WEIGHTS[name])


def test_two_models_in_parts_are_two_models(tmp_path: Path) -> None:
    write(tmp_path, "a.gguf", split=30)
    write(tmp_path, "b.gguf", split=30)
    assert "2 GGUF files" in refusal(tmp_path)
    assert open_checkpoint(tmp_path / "b-00002-of-00003.gguf").layout == "gguf"


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_part_that_is_missing_is_named(tmp_path: Path, missing: int) -> None:
    write(tmp_path, split=30)
    name = f"tiny-{missing:05d}-of-00003.gguf"
    (tmp_path / name).unlink()
    message = refusal(tmp_path)
    assert name in message
    assert "merge" in message


def test_a_part_under_another_name_is_no_whole_file(tmp_path: Path) -> None:
    write(tmp_path, split=30)
    path = (tmp_path / "tiny-00001-of-00003.gguf").rename(tmp_path / "model.gguf")
    message = refusal(path)
    assert "part 0 of 3" in message
    assert "llama-gguf-split" in message


def test_parts_that_changed_places_are_refused(tmp_path: Path) -> None:
    write(tmp_path, split=30)
    second, third = (tmp_path / f"tiny-{n:05d}-of-00003.gguf" for n in (2, 3))
    second.rename(tmp_path / "x")
    third.rename(second)
    (tmp_path / "x").rename(third)
    assert "calls itself part 2" in refusal(tmp_path)


def test_a_tensor_in_two_parts_is_refused(tmp_path: Path) -> None:
    """Both parts hold every tensor and say what their names say."""
    for number in range(2):
        keys = {"split.no": number, "split.count": 2}
        write(tmp_path, f"m-{number + 1:05d}-of-00002.gguf", metadata=keys)
    assert "is in two parts" in refusal(tmp_path)


# -- what lies beside the file -------------------------------------------------------


def test_metadata_are_all_there_as_plain_values(tmp_path: Path) -> None:
    keys = {"tokenizer.ggml.tokens": ["a", "ä", ""], "tokenizer.ggml.add_bos_token": True}
    path = write(tmp_path, metadata=keys)
    found = open_checkpoint(path).files.gguf
    fields = gguf.GGUFReader(path).fields
    assert found == {k: f.contents() for k, f in fields.items() if not k.startswith("GGUF.")}
    assert found["tokenizer.ggml.tokens"] == ["a", "ä", ""]


def test_the_template_in_the_file_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path, metadata={"tokenizer.chat_template": TEMPLATE})
    files = open_checkpoint(path).files
    assert files.chat_template == TEMPLATE
    assert files.tokenizer is None


def test_files_beside_it_are_preferred(tmp_path: Path) -> None:
    path = write(tmp_path, metadata={"tokenizer.chat_template": TEMPLATE})
    write_side_files(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("beside")
    files = open_checkpoint(path).files
    assert files.chat_template == "beside"
    assert files.tokenizer == (tmp_path / "tokenizer.json").resolve()
    assert files.generation_config["top_p"] == 0.95
    assert files.tokenizer_config


def test_a_template_that_is_no_text_is_noted(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write(tmp_path, metadata={"tokenizer.chat_template": 3}))
    assert checkpoint.files.chat_template is None
    assert any("chat_template" in note for note in checkpoint.notes)


def test_the_configuration_beside_it_gives_the_numbers_that_float32_cuts(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert open_checkpoint(path).config.output_multiplier != CONFIG.output_multiplier
    (tmp_path / "config.json").write_text(json.dumps(hf_config(CONFIG)))
    assert open_checkpoint(path).config == CONFIG


@pytest.mark.parametrize(
    "change",
    [{"sliding_window": 9}, {"rms_norm_eps": 1e-6}, {"qk_scale_factor": 3.0}, {"rope_theta": 1e4}],
)
def test_a_configuration_beside_it_that_says_otherwise_is_refused(
    tmp_path: Path, change: dict[str, float]
) -> None:
    path = write(tmp_path)
    other = hf_config(CONFIG.model_copy(update=change))
    (tmp_path / "config.json").write_text(json.dumps(other))
    message = refusal(path, ConfigError)
    assert next(iter(change)) in message
    assert "config.json" in message


def test_an_untied_configuration_beside_it_wants_the_head(tmp_path: Path) -> None:
    path = write(tmp_path, tensors={"output.weight": None})
    (tmp_path / "config.json").write_text(json.dumps(hf_config(CONFIG)))
    assert "1 tensors (output)" in refusal(path)


def test_a_configuration_of_another_model_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama", "auto_map": {"a": "b.py"}}')
    notes = open_checkpoint(path).notes
    assert any("another model" in note for note in notes)
    assert any("never executed" in note for note in notes)
