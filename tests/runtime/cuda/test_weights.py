"""Weights arrive one by one, fused and rounded, and the host never holds two."""

from __future__ import annotations

import weakref

import ml_dtypes
import numpy as np
import pytest
import torch

from atem.runtime.cuda.weights import Loader, as_tensor
from atem.testing.tiny import MemoryCheckpoint, tiny_config, tiny_weights
from tests.runtime.cuda.models import CPU

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def load(checkpoint, dtype=torch.float32, progress=lambda _: None):
    return Loader(checkpoint, CPU, dtype, progress).load()


@pytest.mark.parametrize("stored", TYPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matrices_get_the_engines_type_and_norms_stay_in_float32(stored, dtype):
    weights = {name: values.astype(stored) for name, values in tiny_weights(tiny_config()).items()}
    found = load(MemoryCheckpoint(weights=weights), dtype)
    layer = found.layers[2]

    def rounded(name, to=dtype):
        return torch.from_numpy(weights[name].astype(np.float32)).to(to)

    parts = [rounded(f"layers.2.{part}") for part in ("q", "k", "v", "gate")]
    assert torch.equal(layer.qkvg, torch.cat(parts))
    parts = [rounded(f"layers.2.{part}") for part in ("ffn_gate", "ffn_up")]
    assert torch.equal(layer.gate_up, torch.cat(parts))
    assert torch.equal(layer.o, rounded("layers.2.o"))
    assert torch.equal(found.head, rounded("head"))
    for name in ("attn_norm", "post_attn_norm", "ffn_norm", "post_ffn_norm"):
        assert torch.equal(getattr(layer, name), 1 + rounded(f"layers.2.{name}", torch.float32))
    assert torch.equal(found.norm, rounded("norm", torch.float32))


def test_a_tied_head_is_the_table_itself():
    found = load(MemoryCheckpoint(tiny_config(tie_word_embeddings=True)))
    assert found.head is found.embed


class Counting(MemoryCheckpoint):
    """Gives a fresh array each time, and looks how many are still there."""

    def __init__(self):
        super().__init__()
        self.alive: list[weakref.ref] = []

    def read(self, name):
        assert not [1 for array in self.alive if array() is not None]
        array = super().read(name).copy()
        self.alive.append(weakref.ref(array))
        return array


def test_one_tensor_at_a_time_is_on_the_host():
    checkpoint = Counting()
    load(checkpoint)
    assert len(checkpoint.alive) == len(checkpoint.tensors)


def test_progress_counts_the_stored_bytes_to_the_end():
    heard, checkpoint = [], MemoryCheckpoint()
    load(checkpoint, progress=heard.append)
    total = sum(info.stored_bytes for info in checkpoint.tensors.values())
    assert [one.done for one in heard] == sorted({one.done for one in heard})
    assert {one.total for one in heard} == {total}
    assert heard[-1].done == total


@pytest.mark.parametrize("stored", TYPES)
def test_an_array_that_cant_be_written_to_is_copied_without_a_warning(stored):
    array = np.arange(6, dtype=np.float32).reshape(2, 3).astype(stored)
    array.setflags(write=False)
    tensor = as_tensor(array)
    assert tensor.float().tolist() == [[0, 1, 2], [3, 4, 5]]
    tensor += 1
    assert array[0, 0] == 0
