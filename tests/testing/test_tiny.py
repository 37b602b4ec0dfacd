"""The tiny checkpoints are one checkpoint, in memory and on disk."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from atem.runtime.checkpoint import canonical_shapes
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import MemoryCheckpoint, tiny_checkpoint, tiny_config


def test_a_checkpoint_in_memory_is_what_a_stored_one_reads(tmp_path):
    memory = MemoryCheckpoint()
    with closing(memory), closing(open_checkpoint(tiny_checkpoint(tmp_path))) as stored:
        assert memory.config == stored.config
        assert dict(memory.tensors) == dict(stored.tensors)
        assert list(memory.tensors) == list(canonical_shapes(memory.config))
        for name in memory.tensors:
            assert np.array_equal(memory.read(name), stored.read(name))
        assert np.array_equal(memory.rows("embed", [3, 1]), stored.rows("embed", [3, 1]))


def test_its_weights_may_be_given():
    config = tiny_config(num_hidden_layers=1, tie_word_embeddings=True)
    weights = {
        name: np.zeros(shape, np.float16) for name, shape in canonical_shapes(config).items()
    }
    checkpoint = MemoryCheckpoint(config, weights)
    assert checkpoint.read("embed") is weights["embed"]
    assert checkpoint.tensors["embed"].encoding == "F16"
