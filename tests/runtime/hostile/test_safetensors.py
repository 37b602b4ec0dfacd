"""Folders made to harm: each is a typed error, found before its memory is claimed."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atem.errors import CheckpointError, LayoutError, TensorError, UnsafeCheckpoint
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import tiny_checkpoint, tiny_config, tiny_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG = tiny_config(num_hidden_layers=1, intermediate_size=8)
BOUND = 8 << 20
"""Bytes that any of these may claim; they ask for up to exabytes."""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    weights = tiny_weights(CONFIG)
    return tiny_checkpoint(tmp_path_factory.mktemp("good"), config=CONFIG, weights=weights)


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "model")


def read_all(folder: Path, **options) -> None:
    with open_checkpoint(folder, **options) as checkpoint:
        for name in checkpoint.tensors:
            checkpoint.read(name)


def refused(folder: Path, kind: type[CheckpointError], said: str = ".", **options) -> None:
    """Opening and reading all of it raises ``kind`` within the bound."""
    tracemalloc.start()
    try:
        with pytest.raises(kind, match=said):
            read_all(folder, **options)
        assert tracemalloc.get_traced_memory()[1] < BOUND
    finally:
        tracemalloc.stop()


def header_of(folder: Path) -> tuple[dict, bytes]:
    content = (folder / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def write(folder: Path, header: bytes, data: bytes, length: int | None = None) -> None:
    claimed = len(header) if length is None else length
    path = folder / "model.safetensors"
    path.write_bytes(claimed.to_bytes(8, "little") + header + data)


def change_header(folder: Path, change: Callable[[dict], object]) -> None:
    header, data = header_of(folder)
    change(header)
    write(folder, json.dumps(header).encode(), data)


def change_config(folder: Path, **changes) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["text_config"] |= changes
    path.write_text(json.dumps(config))


HEAD = "lm_head.weight"


@pytest.mark.parametrize("length", [0, 1, 7, 10**8 + 1, 1 << 40, (1 << 64) - 1])
def test_a_header_length_that_lies(folder, length):
    header, data = header_of(folder)
    write(folder, json.dumps(header).encode(), data, length)
    refused(folder, UnsafeCheckpoint, "header")


def test_a_header_as_long_as_the_file_claims_and_not_json(folder):
    path = folder / "model.safetensors"
    with path.open("r+b") as file:  # sparse: 16 MB that are not there
        file.write((16_000_000).to_bytes(8, "little"))
        file.truncate(16_000_008)
    with pytest.raises(UnsafeCheckpoint, match="not JSON"):
        open_checkpoint(folder)


@pytest.mark.parametrize("size", [0, 4, 8, 9, 1000, -1])
def test_a_truncated_file(folder, size):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    refused(folder, UnsafeCheckpoint)


@pytest.mark.parametrize("depth", [900, 2_000, 100_000])
@pytest.mark.parametrize("place", ["shape", "data_offsets", "dtype"])
def test_deep_nesting_in_a_header(folder, depth, place):
    header, data = header_of(folder)
    header[HEAD][place] = "DEEP"
    text = json.dumps(header).replace('"DEEP"', "[" * depth + "]" * depth)
    write(folder, text.encode(), data)
    refused(folder, UnsafeCheckpoint)


NUMBERS = {
    "2^31": str(1 << 31),
    "2^63 - 1": str((1 << 63) - 1),
    "2^63": str(1 << 63),
    "10^4000": "1" + "0" * 4000,
    "10^5000": "1" + "0" * 5000,
    "negative": "-1",
    "a fraction": "1e300",
}


@pytest.mark.parametrize("number", sorted(NUMBERS))
@pytest.mark.parametrize("place", ["shape", "data_offsets"])
def test_a_number_that_lies(folder, number, place):
    header, data = header_of(folder)
    header[HEAD][place] = [0, "BIG"]
    text = json.dumps(header).replace('"BIG"', NUMBERS[number])
    write(folder, text.encode(), data)
    refused(folder, UnsafeCheckpoint)


@pytest.mark.parametrize("shape", [[64, 320], [320 * 64], [1, 320, 64], [320, 32, 2]])
def test_a_shape_of_the_right_size_that_lies(folder, shape):
    change_header(folder, lambda header: header[HEAD].update(shape=shape))
    refused(folder, TensorError, "lm_head")


def test_a_dtype_of_the_right_size_that_lies(folder):
    change_header(folder, lambda header: header[HEAD].update(dtype="U32"))
    refused(folder, TensorError, "U32")


def test_many_axes(folder):
    change_header(folder, lambda header: header[HEAD].update(shape=[1] * 100_000 + [320, 64]))
    refused(folder, UnsafeCheckpoint, "shape")


def test_two_tensors_on_the_same_bytes(folder):
    def overlap(header):
        header[HEAD]["data_offsets"] = header["model.language_model.embed_tokens.weight"][
            "data_offsets"
        ]

    change_header(folder, overlap)
    refused(folder, UnsafeCheckpoint, "overlap|hole")


def test_many_tensors_of_no_bytes(folder):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    change_header(
        folder, lambda header: header.update({f"x{n}.weight": empty for n in range(2000)})
    )
    refused(folder, LayoutError, "2000 tensors")


@pytest.mark.parametrize("field", ["num_attention_heads", "num_key_value_heads", "head_dim",
                                   "hidden_size", "intermediate_size", "vocab_size"])  # fmt: skip
@pytest.mark.parametrize("number", [1 << 20, 1 << 40, 10**30])
def test_a_configuration_of_huge_sizes(folder, field, number):
    change_config(folder, **{field: number})
    refused(folder, CheckpointError, rope_style="pairs")


@pytest.mark.parametrize("number", [1 << 20, 10**9, 10**30])
def test_a_configuration_of_very_many_layers(folder, number):
    change_config(folder, num_hidden_layers=number, layer_types=None, layer_rope_theta=None)
    refused(folder, CheckpointError)


def test_weights_that_are_not_numbers(folder):
    header, data = header_of(folder)
    start, _ = header[HEAD]["data_offsets"]
    broken = data[:start] + b"\x00\x00\xc0\x7f" + data[start + 4 :]
    write(folder, json.dumps(header).encode(), broken)
    refused(folder, TensorError, "lm_head")


def test_an_index_that_leads_out_of_the_folder(folder, tmp_path):
    shutil.copy(folder / "model.safetensors", tmp_path / "secret.safetensors")
    places = dict.fromkeys(header_of(folder)[0], "../secret.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    refused(folder, UnsafeCheckpoint, "plain file name")


def test_a_symlink_that_leads_out_of_the_folder(folder, tmp_path):
    (folder / "model.safetensors").rename(tmp_path / "secret")
    (folder / "model.safetensors").symlink_to("../secret")
    refused(folder, UnsafeCheckpoint, "leads out")


def test_pickles_alone(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    refused(folder, UnsafeCheckpoint, "run code")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_bytes_of_a_header_give_a_checkpoint_or_its_error(good, tmp_path, data):
    path = good / "model.safetensors"
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, end - 1))
        changed[place] = data.draw(st.integers(0, 255) | st.sampled_from(b'0123456789"[]{},:-.e'))
    mutant = tmp_path / "mutant"
    if not mutant.exists():
        shutil.copytree(good, mutant)
    (mutant / "model.safetensors").write_bytes(changed)
    with suppress(CheckpointError):
        read_all(mutant)
