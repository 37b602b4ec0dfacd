"""A checkpoint as engines see it: one configuration, canonical tensors, the files beside them.

Rules: canonical means HF conventions (model.md 3.3): q and k rows in the half
("rotate_half") order, layer norms stored as an offset from 1, q and the output
gate apart, nothing quantised. A tensor is made when it is asked for and not
kept: reading is lazy, memory-mapped, one tensor at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from .config import ModelConfig

RopeStyle: TypeAlias = Literal["half", "pairs"]

TOP: Final = ("embed", "norm", "head")
"""Tensors outside the layers: table [V, d], final norm [d] (a plain weight), head [V, d]."""

LAYER: Final = (
    "attn_norm", "q", "k", "v", "gate", "o", "post_attn_norm",
    "ffn_norm", "ffn_gate", "ffn_up", "ffn_down", "post_ffn_norm",
)  # fmt: skip
"""Tensors of a layer (model.md 4.1): ``layers.3.attn_norm`` and so on.

q, gate [H*D, d]; k, v [K*D, d]; o [d, H*D]; ffn_gate, ffn_up [f, d]; ffn_down [d, f];
the four norms [d], as offsets from 1.
"""


def layer_name(layer: int, part: str) -> str:
    """The canonical name of ``part`` in ``layer``."""
    return f"layers.{layer}.{part}"


def canonical_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Canonical name -> shape, in model order; ``head`` is absent when it is tied."""
    d, f = config.hidden_size, config.intermediate_size
    q = config.num_attention_heads * config.head_dim
    kv = config.num_key_value_heads * config.head_dim
    parts = {
        "attn_norm": (d,), "q": (q, d), "k": (kv, d), "v": (kv, d), "gate": (q, d), "o": (d, q),
        "post_attn_norm": (d,), "ffn_norm": (d,), "ffn_gate": (f, d), "ffn_up": (f, d),
        "ffn_down": (d, f), "post_ffn_norm": (d,),
    }  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {"embed": (config.vocab_size, d)}
    for layer in range(config.num_hidden_layers):
        shapes |= {layer_name(layer, part): shape for part, shape in parts.items()}
    shapes["norm"] = (d,)
    if not config.tie_word_embeddings:
        shapes["head"] = (config.vocab_size, d)
    return shapes


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A canonical tensor before it is read.

    ``encoding`` is how it is stored: "F32", "BF16", "F16", "MLX4" (affine, 4
    bits), "NVFP4", "MXFP8", "FP8", "Q4_K", ... ``stored_bytes`` counts its
    bytes on disk, scales included.
    """

    shape: tuple[int, ...]
    encoding: str
    stored_bytes: int

    @property
    def size(self) -> int:
        """Number of values."""
        product = 1
        for length in self.shape:
            product *= length
        return product


@dataclass(frozen=True, slots=True)
class SideFiles:
    """What lies beside the weights, as far as it is there. Nothing of it is ever executed."""

    tokenizer: Path | None = None
    """``tokenizer.json``."""
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    gguf: Mapping[str, Any] = field(default_factory=dict)
    """GGUF metadata (key -> value), of a GGUF file."""


class Checkpoint(Protocol):
    """What :func:`atem.runtime.layouts.open_checkpoint` gives. Close it, or use ``with``."""

    path: Path
    layout: str
    """Name of the layout: "hf", "raw", ..."""
    config: ModelConfig
    rope_style: RopeStyle
    """Order of q and k rows in the file; what is read is always half."""
    files: SideFiles
    has_vision: bool
    """Whether vision tensors are present (they are recognised and kept aside)."""
    notes: tuple[str, ...]
    """What a person should know: warnings, dropped buffers, ignored keys."""
    tensors: Mapping[str, TensorInfo]
    """Every canonical tensor, in model order."""

    def read(self, name: str, /) -> NDArray[Any]:
        """The tensor, C-contiguous, in float32, float16 or bfloat16 (``ml_dtypes``).

        Quantised ones are dequantised to float32. Raises TensorError for
        values that are not finite or scales that can't be.
        """

    def rows(self, name: str, numbers: Sequence[int], /) -> NDArray[np.float32]:
        """Some rows of the tensor in float32 (of a table too big to read for a look)."""

    def close(self) -> None:
        """Give the files back."""

    def __enter__(self) -> Self:
        """The checkpoint itself."""

    def __exit__(self, *_: object) -> None:
        """Close it."""
