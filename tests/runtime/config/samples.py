"""Configurations in every schema, written by hand from model.md 3 and 4.4, and how a refusal looks.

Rules: no reader of atem is used to write one.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import pytest

from atem.errors import ConfigError
from atem.runtime.schemas import read_config
from atem.testing.tiny import hf_config, tiny_config

if TYPE_CHECKING:
    from atem.runtime.config import ModelConfig

SAME = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "sliding_window", "rms_norm_eps", "post_norm_eps",
    "max_position_embeddings", "output_multiplier", "tie_word_embeddings",
)  # fmt: skip
VISION = {"hidden_size": 16, "merge_size": 2, "pos_emb_height": 4, "pos_emb_width": 4}

GGUF_NAMES = {
    "block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
    "attention.value_length": "head_dim", "attention.sliding_window": "sliding_window",
    "vocab_size": "vocab_size", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta", "logit_scale": "output_multiplier",
    "final_logit_softcapping": "final_logit_softcapping",
}  # fmt: skip


def nested(config: ModelConfig | None = None, /, **changes: Any) -> dict[str, Any]:
    """Today's form; ``changes`` go into text_config, GONE takes a key away."""
    raw = hf_config(config or tiny_config())
    raw["text_config"] = _changed(raw["text_config"], changes)
    return raw


def seeing(vision: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The nested form with a small vision tower; ``changes`` go to the top."""
    tower = {**VISION, **(vision or {})}
    return {**nested(), "vision_config": tower, "out_hidden_size": 64, **changes}


def flattened(config: ModelConfig | None = None, /, **changes: Any) -> dict[str, Any]:
    """HF names at the top level, as in community conversions."""
    raw = hf_config(config or tiny_config())
    text = raw.pop("text_config")
    return _changed({**text, **raw}, changes)


def flat(config: ModelConfig | None = None, /, **changes: Any) -> dict[str, Any]:
    """The flat schema."""
    config = config or tiny_config()
    raw = {
        "model_type": "muse_glimmer",
        **{key: getattr(config, key) for key in SAME},
        "hidden_act": "silu",
        "rope_theta": config.rope_theta,
        "rope_is_neox_style": False,
        "qk_scale_factor": config.qk_scale_factor * math.sqrt(config.head_dim),
        "output_soft_cap_temp": config.final_logit_softcapping,
        "layer_types": list(config.layer_types),
        "no_rope_layers": [int(kind == "sliding_attention") for kind in config.layer_types],
        "use_qk_norm": True,
        "use_attn_output_gate": True,
        "normalize_tok_embeddings": True,
    }
    return _changed(raw, changes)


def gguf(
    config: ModelConfig | None = None, /, prefix: str = "muse-glimmer", **changes: Any
) -> dict[str, Any]:
    """GGUF metadata; ``changes`` are keys of the architecture, with "__" for a dot."""
    config = config or tiny_config()
    values = {key: getattr(config, name) for key, name in GGUF_NAMES.items()}
    values["attention.sliding_window_pattern"] = [
        kind == "sliding_attention" for kind in config.layer_types
    ]
    changed = _changed(values, {key.replace("__", "."): value for key, value in changes.items()})
    return {
        "general.architecture": prefix,
        **{f"{prefix}.{key}": value for key, value in changed.items()},
    }


def refused(raw: Any, *words: object) -> None:
    """``read_config`` raises ConfigError, and its message has all of ``words``."""
    before = copy.deepcopy(raw)
    with pytest.raises(ConfigError) as caught:
        read_config(raw)
    says(caught, *words)
    assert raw == before


def says(caught: pytest.ExceptionInfo[ConfigError], *words: object) -> None:
    """The message has all of ``words``."""
    missing = [word for word in words if str(word) not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"


def _changed(raw: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**copy.deepcopy(raw), **changes}
    return {key: value for key, value in merged.items() if changes.get(key, 0) is not GONE}


GONE = object()
"""As a change: the key is taken away."""
