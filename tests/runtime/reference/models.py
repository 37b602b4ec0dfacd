"""The models that the reference is tested on, and its engine over them."""

from __future__ import annotations

import numpy as np

from atem.runtime.reference import Model, ReferenceEngine
from atem.testing.tiny import MemoryCheckpoint, tiny_config, tiny_tokenizer, tiny_weights

CONFIGS = {
    "6 layers": {},
    "7 layers": {"num_hidden_layers": 7},
    "tied": {"tie_word_embeddings": True},
    "no cap": {"final_logit_softcapping": None},
    "one key head": {"num_key_value_heads": 1, "num_hidden_layers": 4},
    "other numbers": {
        "rms_norm_eps": 1e-3, "post_norm_eps": 1e-2, "rope_theta": 10.0, "qk_scale_factor": 2.5,
        "output_multiplier": 0.5, "sliding_window": 1,
    },
}  # fmt: skip


def tiny(name: str):
    """Configuration and weights by name."""
    config = tiny_config(**CONFIGS[name])
    return config, tiny_weights(config)


def some_ids(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, 320, count).tolist()


def in_pieces(model: Model, ids: list[int], sizes) -> np.ndarray:
    """Logits [T, V] of ``ids``, computed in pieces of these sizes over one cache."""
    caches, rows, start = model.caches(max(sizes)), [], 0
    for size in sizes:
        rows.append(model.logits(model.hidden(ids[start : start + size], caches)))
        start += size
    assert start == len(ids)
    return np.concatenate(rows)


def tiny_engine(checkpoint=None, **options) -> ReferenceEngine:
    """An engine over ``checkpoint``, or over a random one, with the tiny tokenizer."""
    checkpoint = checkpoint or MemoryCheckpoint()
    return ReferenceEngine(checkpoint, tokenizer=tiny_tokenizer(), **options)
