"""A checkpoint as engines see it: one configuration, canonical tensors, the files beside them.

Rules: canonical means HF conventions (model.md 3.3): q and k rows in the half
("rotate_half") order, layer norms stored as an offset from 1, q and the output
gate apart, nothing quantised. A tensor is made when it is asked for and not
kept: reading is lazy, memory-mapped, one tensor at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from .config import ModelConfig

RopeStyle: TypeAlias = Literal["half", "pairs"]

_QUERY, _KEY = "num_attention_heads * head_dim", "num_key_value_heads * head_dim"
_WIDTH, _FFN, _VOCABULARY = "hidden_size", "intermediate_size", "vocab_size"
LAYER: Final = {
    "attn_norm": (_WIDTH,), "q": (_QUERY, _WIDTH), "k": (_KEY, _WIDTH), "v": (_KEY, _WIDTH),
    "gate": (_QUERY, _WIDTH), "o": (_WIDTH, _QUERY), "post_attn_norm": (_WIDTH,),
    "ffn_norm": (_WIDTH,), "ffn_gate": (_FFN, _WIDTH), "ffn_up": (_FFN, _WIDTH),
    "ffn_down": (_WIDTH, _FFN), "post_ffn_norm": (_WIDTH,),
}  # fmt: skip
"""Tensors of a layer, ``layers.3.attn_norm`` and so on, and their axes (model.md 4.1).

The four norms are offsets from 1.
"""

AXES: Final[dict[str, tuple[str, ...]]] = {
    "embed": (_VOCABULARY, _WIDTH), **LAYER, "norm": (_WIDTH,), "head": (_VOCABULARY, _WIDTH),
}  # fmt: skip
"""Every part of the model and the fields that give its axes; ``norm`` is a plain weight."""


def layer_name(layer: int, part: str) -> str:
    """The canonical name of ``part`` in ``layer``."""
    return f"layers.{layer}.{part}"


def canonical_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Canonical name -> shape, in model order; ``head`` is absent when it is tied."""
    of = {part: tuple(_length(config, axis) for axis in axes) for part, axes in AXES.items()}
    shapes = {"embed": of["embed"]}
    for layer in range(config.num_hidden_layers):
        shapes |= {layer_name(layer, part): of[part] for part in LAYER}
    shapes["norm"] = of["norm"]
    if not config.tie_word_embeddings:
        shapes["head"] = of["head"]
    return shapes


def _length(config: ModelConfig, axis: str) -> int:
    return prod(getattr(config, field) for field in axis.split(" * "))


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
        return prod(self.shape)


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
