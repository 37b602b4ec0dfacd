"""Every safetensors layout, written from the same canonical weights, reads back to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors import safe_open

from atem.runtime.checkpoint import canonical_shapes
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import hf_config, hf_name, tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.layouts import writers
from tests.runtime.oracle import oracle, oracle_logits

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = tiny_config()
WEIGHTS = tiny_weights(CONFIG)
LAYOUTS = sorted(writers.LAYOUTS)
DTYPES = sorted(writers.DTYPES)


def written(folder: Path, layout: str, dtype: str = "float32", shards: int = 1, **options) -> Path:
    write, config = writers.LAYOUTS[layout]
    tensors = write(CONFIG, WEIGHTS, **options)
    return writers.save(folder, tensors, config(CONFIG), dtype=dtype, shards=shards)


def is_absolute(layout: str, name: str) -> bool:
    return layout == "packed" and name.rpartition(".")[2] in writers.NORMS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_reads_back_to_the_canonical_weights(tmp_path, layout, dtype):
    with open_checkpoint(written(tmp_path, layout, dtype)) as checkpoint:
        assert checkpoint.layout == layout
        assert checkpoint.config == CONFIG
        assert list(checkpoint.tensors) == list(canonical_shapes(CONFIG))
        for name, values in WEIGHTS.items():
            if is_absolute(layout, name):
                continue
            got = checkpoint.read(name)
            assert got.dtype == writers.DTYPES[dtype]
            assert got.flags.c_contiguous
            np.testing.assert_array_equal(got, writers.rounded(values, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_absolute_norms_come_out_as_offsets_in_float32(tmp_path, dtype):
    with open_checkpoint(written(tmp_path, "packed", dtype)) as checkpoint:
        for name, values in WEIGHTS.items():
            if is_absolute("packed", name):
                got = checkpoint.read(name)
                stored = writers.rounded(values + 1, dtype).astype(np.float64)
                assert got.dtype == np.float32
                np.testing.assert_array_equal(got.astype(np.float64) + 1, stored)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shards_read_as_one_file_does(tmp_path, layout):
    one = open_checkpoint(written(tmp_path / "one", layout))
    many = open_checkpoint(written(tmp_path / "many", layout, shards=3))
    for name in canonical_shapes(CONFIG):
        np.testing.assert_array_equal(one.read(name), many.read(name))
    one.close()
    many.close()


def test_a_numbered_set_needs_no_index(tmp_path):
    folder = written(tmp_path, "hf", shards=3)
    (folder / "model.safetensors.index.json").unlink()
    with open_checkpoint(folder) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read("head"), WEIGHTS["head"])


@pytest.mark.parametrize("layout", ["raw", "packed"])
def test_a_flat_configuration_may_declare_the_half_order(tmp_path, layout):
    write, config = writers.LAYOUTS[layout]
    tensors = write(CONFIG, WEIGHTS, style="half")
    writers.save(tmp_path, tensors, config(CONFIG, rope_is_neox_style=True))
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.rope_style == "half"
        for part in ("q", "k", "gate"):
            name = f"layers.2.{part}"
            np.testing.assert_array_equal(checkpoint.read(name), WEIGHTS[name])


def test_an_old_export_reads_back_when_its_order_is_given(tmp_path):
    tensors, meant = writers.old(CONFIG, WEIGHTS)
    folder = writers.save(tmp_path, tensors, hf_config(CONFIG))
    with open_checkpoint(folder, rope_style="pairs") as checkpoint:
        assert checkpoint.rope_style == "pairs"
        for name, values in meant.items():
            np.testing.assert_array_equal(checkpoint.read(name), values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_rows_of_what_is_read(tmp_path, layout):
    numbers = [5, 0, 63, 5]
    with open_checkpoint(written(tmp_path, layout, "bfloat16")) as checkpoint:
        for name in checkpoint.tensors:
            if len(checkpoint.tensors[name].shape) == 2:
                numbers_here = [n % checkpoint.tensors[name].shape[0] for n in numbers]
                whole = checkpoint.read(name).astype(np.float32)[numbers_here]
                got = checkpoint.rows(name, numbers_here)
                assert got.dtype == np.float32
                np.testing.assert_array_equal(got, whole)


def test_a_tied_head_is_no_tensor(tmp_path):
    config = tiny_config(tie_word_embeddings=True)
    with open_checkpoint(tiny_checkpoint(tmp_path, config=config)) as checkpoint:
        assert "head" not in checkpoint.tensors


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_bytes_add_up_to_the_file(tmp_path, layout):
    folder = written(tmp_path, layout, "bfloat16")
    with safe_open(folder / "model.safetensors", "pt") as file:
        stored = sum(file.get_tensor(name).nbytes for name in file.keys())  # noqa: SIM118
    with open_checkpoint(folder) as checkpoint:
        assert {info.encoding for info in checkpoint.tensors.values()} == {"BF16"}
        assert sum(info.stored_bytes for info in checkpoint.tensors.values()) == stored


@pytest.fixture(scope="module")
def saved_by_transformers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    oracle(CONFIG, WEIGHTS, torch.bfloat16).save_pretrained(folder)
    return folder


def test_what_transformers_saves_opens_with_its_values(saved_by_transformers):
    with (
        open_checkpoint(saved_by_transformers) as checkpoint,
        safe_open(saved_by_transformers / "model.safetensors", "pt") as file,
    ):
        assert checkpoint.layout == "hf"
        for name in checkpoint.tensors:
            want = file.get_tensor(hf_name(name)).float().numpy()
            np.testing.assert_array_equal(checkpoint.read(name).astype(np.float32), want)


def test_a_vision_tower_is_seen_and_set_aside(saved_by_transformers):
    with open_checkpoint(saved_by_transformers) as checkpoint:
        assert checkpoint.has_vision
        assert checkpoint.config.vision
        assert list(checkpoint.tensors) == list(canonical_shapes(CONFIG))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_gives_the_oracle_its_logits(tmp_path, layout):
    ids = list(range(20, 44))
    with open_checkpoint(written(tmp_path, layout)) as checkpoint:
        read = {name: checkpoint.read(name) for name in checkpoint.tensors}
    got = oracle_logits(oracle(CONFIG, read), ids)
    np.testing.assert_allclose(got, oracle_logits(oracle(CONFIG, WEIGHTS), ids), atol=2e-5)
