"""The model that all contenders run: random weights of the real architecture, 48 million of them.

Rules: sizes and weights only. It is small enough for a CPU and too large for its caches, so that a
token costs what reading the weights costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atem.runtime.config import layer_pattern
from atem.testing.tiny import MemoryCheckpoint, tiny_config, tiny_weights

if TYPE_CHECKING:
    from atem.runtime.config import ModelConfig

TEXT = 256
"""Ids below this are ordinary tokens of the tiny tokenizer."""


def small() -> ModelConfig:
    """50M parameters in 12 layers."""
    return tiny_config(
        vocab_size=8192, hidden_size=512, intermediate_size=1536, num_hidden_layers=12,
        num_attention_heads=8, num_key_value_heads=2, head_dim=64, sliding_window=128,
        max_position_embeddings=4096, layer_types=layer_pattern(12),
    )  # fmt: skip


def checkpoint() -> MemoryCheckpoint:
    """The random model in memory."""
    config = small()
    return MemoryCheckpoint(config, tiny_weights(config))


def weights_of(model: MemoryCheckpoint) -> dict[str, Any]:
    """Its canonical weights."""
    return {name: model.read(name) for name in model.tensors}


def read_bytes(model: MemoryCheckpoint) -> int:
    """Bytes that every token reads in float32: all weights but the table, of which it reads a row."""
    return sum(info.stored_bytes for name, info in model.tensors.items() if name != "embed")
