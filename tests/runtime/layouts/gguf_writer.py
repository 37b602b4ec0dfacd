"""GGUF files of canonical weights, by gguf's own writer and quantisers, and raw ones byte by byte.

Rules: nothing of atem's runtime reads or writes anything here. Names, order of rows and form of
norms follow model.md 4.1 and 4.4 by their own words, not by the reader's tables.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from atem.runtime.config import ModelConfig
    from atem.testing.tiny import Weights

TOP = {"embed": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight"}
BLOCK = {
    "attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "gate": "attn_gate",
    "o": "attn_output", "post_attn_norm": "post_attention_norm", "ffn_norm": "ffn_norm",
    "ffn_gate": "ffn_gate", "ffn_up": "ffn_up", "ffn_down": "ffn_down",
    "post_ffn_norm": "post_ffw_norm",
}  # fmt: skip

# Bytes of one block, and where in it half-precision scales lie: gguf has no quantiser for these.
K_SCALES = {"Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}


def gguf_name(name: str) -> str:
    """The name of a canonical tensor in a GGUF file."""
    if name in TOP:
        return TOP[name]
    _, layer, part = name.split(".")
    return f"blk.{layer}.{BLOCK[part]}.weight"


def half_to_pairs(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of each head from (j, j + D/2) to (2j, 2j + 1)."""
    heads = rows.reshape(-1, 2, head_dim // 2, rows.shape[-1])
    return np.ascontiguousarray(heads.transpose(0, 2, 1, 3).reshape(rows.shape))


def pairs_to_half(rows: np.ndarray, head_dim: int) -> np.ndarray:
    heads = rows.reshape(-1, head_dim // 2, 2, rows.shape[-1])
    return np.ascontiguousarray(heads.transpose(0, 2, 1, 3).reshape(rows.shape))


def as_gguf(name: str, values: np.ndarray, config: ModelConfig) -> np.ndarray:
    """Canonical values as the file holds them: absolute norms, paired rows."""
    part = name.rpartition(".")[2]
    if part in ("q", "k"):
        return half_to_pairs(values, config.head_dim)
    return values + np.float32(1) if part.endswith("_norm") else values


def from_gguf(name: str, values: np.ndarray, config: ModelConfig) -> np.ndarray:
    """The inverse of :func:`as_gguf`."""
    part = name.rpartition(".")[2]
    if part in ("q", "k"):
        return pairs_to_half(values, config.head_dim)
    return values - np.float32(1) if part.endswith("_norm") else values


def metadata_of(config: ModelConfig, architecture: str = "muse-glimmer") -> dict[str, Any]:
    """The keys of model.md 4.4; whole numbers become uint32, others float32."""
    keys = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.sliding_window": config.sliding_window,
        "attention.sliding_window_pattern": [t == "sliding_attention" for t in config.layer_types],
        "rope.freq_base": config.rope_theta,
        "logit_scale": config.output_multiplier,
        "final_logit_softcapping": config.final_logit_softcapping,
        "vocab_size": config.vocab_size,
    }
    return {f"{architecture}.{key}": value for key, value in keys.items()}


def add_metadata(writer: gguf.GGUFWriter, metadata: Mapping[str, Any]) -> None:
    for key, value in metadata.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case list():
                writer.add_array(key, value)


def k_blocks(encoding: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random valid blocks of a K type, as bytes [rows, bytes of a row]."""
    random = np.random.default_rng(seed)
    size, scales = K_SCALES[encoding]
    blocks = random.integers(0, 256, (shape[0], shape[1] // 256, size), dtype=np.uint8)
    for place in scales:
        values = random.uniform(-0.01, 0.01, blocks.shape[:2]).astype(np.float16)
        blocks[..., place : place + 2] = values[..., None].view(np.uint8)
    return blocks.reshape(shape[0], -1)


def stored(values: np.ndarray, encoding: str) -> tuple[np.ndarray, gguf.GGMLQuantizationType]:
    """``values`` in ``encoding``, by gguf's quantiser; random blocks for the K types."""
    kind = gguf.GGMLQuantizationType[encoding]
    if encoding in K_SCALES:
        return k_blocks(encoding, values.shape), kind
    return gguf.quants.quantize(values, kind), kind


def write_gguf(
    path: Path,
    config: ModelConfig,
    weights: Weights,
    *,
    encoding: Callable[[str], str] = lambda name: "F32",
    qk_scale: float | None = 3.87,
    metadata: Mapping[str, Any] | None = None,
    architecture: str = "muse-glimmer",
    tensors: Mapping[str, Any] | None = None,
    split: int = 0,
) -> Path:
    """Write ``weights``; matrices in the ``encoding`` of their canonical name, norms in F32.

    ``qk_scale`` None leaves the q and k norms out. ``metadata`` is laid over what the
    configuration gives (None as a value drops a key), ``tensors`` (values, or bytes and their
    type) over what is written. ``split`` is the most tensors in one part.
    """
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=split)
    keys = metadata_of(config, architecture) | dict(metadata or {})
    add_metadata(writer, {key: value for key, value in keys.items() if value is not None})
    content: dict[str, Any] = {}
    for name, values in weights.items():
        kind = encoding(name) if values.ndim == 2 else "F32"
        content[gguf_name(name)] = stored(as_gguf(name, values, config), kind)
    for layer in range(config.num_hidden_layers if qk_scale is not None else 0):
        for part, constant in (("q", qk_scale), ("k", 1.0)):
            values = np.full(config.head_dim, constant, np.float32)
            content[f"blk.{layer}.attn_{part}_norm.weight"] = stored(values, "F32")
    for name, values in (tensors or {}).items():
        content[name] = stored(values, "F32") if isinstance(values, np.ndarray) else values
    for name, pair in content.items():
        if pair is not None:
            writer.add_tensor(name, pair[0], raw_dtype=pair[1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


@dataclass
class RawGGUF:
    """A GGUF file from its bytes: whatever is said here is written, true or not."""

    keys: list[bytes] = field(default_factory=list)
    tensors: list[bytes] = field(default_factory=list)
    data: bytes = b""
    magic: bytes = b"GGUF"
    version: int = 3
    key_count: int | None = None
    tensor_count: int | None = None

    def key(self, name: str | bytes, kind: int, value: bytes) -> RawGGUF:
        self.keys.append(text(name) + struct.pack("<I", kind) + value)
        return self

    def tensor(
        self,
        name: str,
        dims: tuple[int, ...],
        kind: int = 0,
        offset: int = 0,
        n_dims: int | None = None,
    ) -> RawGGUF:
        """``dims`` in the file's order, the row's length first."""
        count = len(dims) if n_dims is None else n_dims
        head = text(name) + struct.pack(f"<I{len(dims)}Q", count, *dims)
        self.tensors.append(head + struct.pack("<IQ", kind, offset))
        return self

    def bytes(self, alignment: int = 32) -> bytes:
        tensors = len(self.tensors) if self.tensor_count is None else self.tensor_count
        keys = len(self.keys) if self.key_count is None else self.key_count
        head = self.magic + struct.pack("<IQQ", self.version, tensors, keys)
        head += b"".join(self.keys) + b"".join(self.tensors)
        return head + bytes(-len(head) % alignment) + self.data
