"""A plan's figures are those of the configuration, and no weight is read for them."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import atem
from atem.runtime.checkpoint import canonical_shapes
from atem.runtime.layouts import open_checkpoint
from atem.runtime.memory import Needs, available_memory, growing_bytes, layer_bytes, ring_bytes
from atem.runtime.plan import plan_checkpoint
from atem.testing.tiny import tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.layouts import quant_writers, writers

RELEASED = tiny_config(
    vocab_size=202048, hidden_size=6656, intermediate_size=19968, num_hidden_layers=52,
    num_attention_heads=32, num_key_value_heads=2, head_dim=128, sliding_window=2048,
    max_position_embeddings=131072,
)  # fmt: skip


def test_the_released_model_takes_what_its_specification_says():
    """model.md 1.1: 1 KiB a token and layer, 13 KiB a token in full layers, 78 MiB in rings."""
    assert layer_bytes(RELEASED, "bfloat16") == 1024
    assert growing_bytes(RELEASED, "bfloat16") == 13 * 1024
    assert ring_bytes(RELEASED, "bfloat16") == 78 * 1024**2
    parameters = sum(int(np.prod(shape)) for shape in canonical_shapes(RELEASED).values())
    assert parameters == pytest.approx(27.85e9, rel=1e-3)


def test_the_plan_of_a_checkpoint_counts_its_bytes(tmp_path):
    found = atem.plan(tiny_checkpoint(tmp_path, dtype="bfloat16"), backend="reference")
    count = sum(int(np.prod(shape)) for shape in canonical_shapes(tiny_config()).values())
    assert (found.layout, found.dtype, found.parameters) == ("hf", "float32", count)
    assert (found.encodings, found.stored, found.weights) == ({"BF16": count}, 2 * count, 4 * count)
    assert (found.dequantised, found.unpacking, found.verdict) == (0, 0, "fits")


def test_a_plan_does_not_look_at_what_the_weights_are(tmp_path):
    weights = tiny_weights(tiny_config())
    weights["layers.0.o"] = np.full_like(weights["layers.0.o"], np.nan)
    folder = tiny_checkpoint(tmp_path, weights=weights)
    assert atem.plan(folder, backend="reference").parameters > 0
    with closing(open_checkpoint(folder)) as checkpoint, pytest.raises(atem.TensorError):
        checkpoint.read("layers.0.o")


def test_the_engines_options_are_in_the_plan(tmp_path):
    folder = tiny_checkpoint(tmp_path)
    for backend in ("reference", "torch"):
        found = atem.plan(folder, backend=backend, context=100, prefix_bytes=12345)
        assert (found.context, found.prefix_bytes) == (100, 12345)
        assert found.context_bytes == found.ring + found.per_1k_tokens // 10


def test_a_server_has_no_plan():
    with pytest.raises(atem.OptionError, match="no checkpoint to look at"):
        atem.plan("http://127.0.0.1:9")
    with pytest.raises(atem.OptionError, match="needs an http"):
        atem.plan("x", backend="remote")


@pytest.mark.parametrize(
    ("available", "verdict"), [(10**9, "fits"), (1_600_000, "tight"), (10**6, "does not fit")]
)
def test_the_verdict_compares_with_the_memory(tmp_path, available, verdict):
    with open_checkpoint(tiny_checkpoint(tmp_path)) as checkpoint:
        found = plan_checkpoint(checkpoint, Needs("float32", available, 512))
    assert found.needed == pytest.approx(1.52e6, rel=0.01)
    assert found.verdict == verdict


def test_a_plan_without_a_word_on_memory_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr("atem.runtime.backends.available_memory", lambda: None)
    assert atem.plan(tiny_checkpoint(tmp_path), backend="reference").verdict == "unknown"


def test_an_old_export_is_planned_with_its_doubt_as_a_note(tmp_path):
    config = tiny_config()
    tiny_checkpoint(tmp_path, config=config, weights={})
    tensors, _ = writers.old(config, tiny_weights(config))
    writers.save_file(tensors, tmp_path / "model.safetensors")
    assert any("rope_style" in note for note in atem.plan(tmp_path, backend="reference").notes)


def test_this_machine_has_memory():
    assert available_memory() > 100 * 1024**2


def test_quantised_weights_are_said_to_be_unpacked(tmp_path):
    block = {"group_size": 32, "bits": 4}
    case = quant_writers.quantised("mlx", quant_writers.only_linears(quant_writers.mlx), block)
    found = atem.plan(case.save(tmp_path), backend="reference")
    linears = [v.size for n, v in case.meant.items() if quant_writers.linears(n)]
    per_group = 32 * 4 // 8 + 4 + 4  # codes, a float32 scale, a float32 bias
    assert found.dequantised == sum(linears)
    assert found.unpacking == sum(linears) * 4 - sum(linears) // 32 * per_group
