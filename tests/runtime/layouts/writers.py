"""Canonical weights written as each safetensors layout, apart from the runtime's own tables.

Rules: names are spelled out from model.md 4.1, rows are moved head by head. A
writer returns stored name -> float32; ``save`` rounds and writes.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from atem.testing.tiny import hf_config, hf_name, write_side_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from atem.runtime.config import ModelConfig
    from atem.testing.tiny import Weights

DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
NORMS = ("attn_norm", "post_attn_norm", "ffn_norm", "post_ffn_norm")
RAW = {
    "attn_norm": "input_layernorm", "post_attn_norm": "post_attn_norm",
    "ffn_norm": "post_attention_layernorm", "post_ffn_norm": "post_ffn_norm",
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
    "o": "self_attn.o_proj", "gate": "self_attn.output_gate_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """``values`` in the stored type."""
    return np.ascontiguousarray(values).astype(DTYPES[dtype])


def in_pairs(values: np.ndarray, heads: int) -> np.ndarray:
    """Half order -> pairs: in each head, row j of the first half is followed by row j of the second."""
    out = np.empty_like(values)
    for stored, head in zip(np.split(out, heads), np.split(values, heads), strict=True):
        first, second = np.split(head, 2)
        stored[0::2], stored[1::2] = first, second
    return out


def ordered(config: ModelConfig, weights: Weights, style: str) -> dict[str, np.ndarray]:
    """Canonical names, q and k in ``style``."""
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}
    out = dict(weights)
    for name, values in weights.items():
        part = name.rpartition(".")[2]
        if style == "pairs" and part in heads:
            out[name] = in_pairs(values, heads[part])
    return out


def hf(config: ModelConfig, weights: Weights, style: str = "half") -> dict[str, np.ndarray]:
    return {hf_name(name): values for name, values in ordered(config, weights, style).items()}


def bare(config: ModelConfig, weights: Weights, style: str = "half") -> dict[str, np.ndarray]:
    prefix = "model.language_model."
    return {
        name.replace(prefix, "model."): values
        for name, values in hf(config, weights, style).items()
    }


def old(config: ModelConfig, weights: Weights) -> tuple[dict[str, np.ndarray], Weights]:
    """An export of the older converter, and the canonical weights that it means."""
    table = weights["embed"]
    scale = np.sqrt(np.mean(np.square(table), axis=1, keepdims=True) + config.rms_norm_eps)
    meant = dict(weights) | {"embed": (table / scale).astype(np.float32)}
    return hf(config, meant, "pairs"), meant


def raw(config: ModelConfig, weights: Weights, style: str = "pairs") -> dict[str, np.ndarray]:
    return {raw_name(name): values for name, values in ordered(config, weights, style).items()}


def raw_name(name: str) -> str:
    if name in {"embed", "norm", "head"}:
        top = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
        return f"{top[name]}.weight"
    _, layer, part = name.split(".")
    return f"model.layers.{layer}.{RAW[part]}.weight"


def packed(config: ModelConfig, weights: Weights, style: str = "pairs") -> dict[str, np.ndarray]:
    """q and gate of a head stand one behind the other; the layers' norms have 1 added."""
    given = ordered(config, weights, style)
    heads = config.num_attention_heads
    out = {}
    for name, values in given.items():
        part = name.rpartition(".")[2]
        if part == "gate":
            continue
        stored = values + 1 if part in NORMS else values
        if part == "q":
            gate = given[name.removesuffix("q") + "gate"]
            both = zip(np.split(values, heads), np.split(gate, heads), strict=True)
            stored = np.concatenate([rows for head in both for rows in head])
        out[raw_name(name)] = stored
    return out


def flat_config(config: ModelConfig, **changes: Any) -> dict[str, Any]:
    """``config`` as the flat schema (model.md 3.2), with ``changes``; a None value leaves a key out."""
    text = config.model_dump()
    same = (
        "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
        " num_key_value_heads head_dim sliding_window max_position_embeddings rms_norm_eps"
        " post_norm_eps output_multiplier rope_theta tie_word_embeddings"
    ).split()
    raw_config: dict[str, Any] = {
        "model_type": "muse_glimmer",
        **{key: text[key] for key in same},
        "layer_types": list(config.layer_types),
        "no_rope_layers": [int(kind == "sliding_attention") for kind in config.layer_types],
        "hidden_act": "silu",
        "qk_scale_factor": config.qk_scale_factor * math.sqrt(config.head_dim),
        "output_soft_cap_temp": config.final_logit_softcapping,
        "rope_is_neox_style": False,
        "use_qk_norm": True,
        "use_attn_output_gate": True,
        "normalize_tok_embeddings": True,
    }
    return {key: value for key, value in (raw_config | changes).items() if value is not None}


def packed_config(config: ModelConfig, **changes: Any) -> dict[str, Any]:
    return flat_config(config, **({"muse_glimmer_mlx_format": 1} | changes))


def save(
    folder: Path,
    tensors: Mapping[str, np.ndarray],
    config: Mapping[str, Any],
    *,
    dtype: str = "float32",
    shards: int = 1,
) -> Path:
    """Write the folder; with ``shards`` > 1 the tensors are dealt out and an index is written."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {name: rounded(values, dtype) for name, values in tensors.items()}
    if shards == 1:
        save_file(stored, folder / "model.safetensors")
    else:
        _save_shards(folder, stored, shards)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_side_files(folder)
    return folder


def _save_shards(folder: Path, stored: Mapping[str, np.ndarray], count: int) -> None:
    places = {
        name: f"model-{n % count + 1:05d}-of-{count:05d}.safetensors"
        for n, name in enumerate(stored)
    }
    for shard in sorted(set(places.values())):
        save_file({n: v for n, v in stored.items() if places[n] == shard}, folder / shard)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


LAYOUTS = {
    "hf": (hf, hf_config),
    "bare": (bare, hf_config),
    "raw": (raw, flat_config),
    "packed": (packed, packed_config),
}
"""Layout -> its writer and its configuration."""
