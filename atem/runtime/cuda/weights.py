"""The weights on their device, fused and rounded as they are used.

Rules: one tensor at a time goes from the checkpoint to the device; the host
never holds two. Norm weights stay in float32 (model.md 1.3), matrices are of
the engine's type. What is multiplied by the same rows is one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from ...engine import Progress
from ..checkpoint import canonical_shapes, layer_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from ..checkpoint import Checkpoint

QKVG: Final = ("q", "k", "v", "gate")
GATE_UP: Final = ("ffn_gate", "ffn_up")


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of a layer: qkvg [2*(H+K)*D, d], gate_up [2f, d], norms [d] with 1 added."""

    attn_norm: Tensor
    qkvg: Tensor
    o: Tensor
    post_attn_norm: Tensor
    ffn_norm: Tensor
    gate_up: Tensor
    ffn_down: Tensor
    post_ffn_norm: Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights: embed and head [V, d], norm [d]."""

    embed: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Tensor


class Loader:
    """Brings the weights of ``checkpoint`` to ``device``, matrices in ``dtype``.

    ``progress`` hears the stored bytes read so far.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        device: torch.device,
        dtype: torch.dtype,
        progress: Callable[[Progress], None],
    ) -> None:
        self._checkpoint, self._device, self._dtype = checkpoint, device, dtype
        self._shapes = canonical_shapes(checkpoint.config)
        self._progress = progress
        self._done = 0
        self._total = sum(info.stored_bytes for info in checkpoint.tensors.values())

    def load(self) -> Weights:
        """All weights, read in model order."""
        config = self._checkpoint.config
        embed = self._matrix("embed")
        layers = tuple(self._layer(number) for number in range(config.num_hidden_layers))
        norm = self._vector("norm")
        head = embed if config.tie_word_embeddings else self._matrix("head")
        return Weights(embed, layers, norm, head)

    def _layer(self, number: int) -> Layer:
        def matrix(*parts: str) -> Tensor:
            return self._matrix(*(layer_name(number, part) for part in parts))

        def norm(part: str) -> Tensor:
            return 1.0 + self._vector(layer_name(number, part))

        return Layer(
            norm("attn_norm"), matrix(*QKVG), matrix("o"), norm("post_attn_norm"),
            norm("ffn_norm"), matrix(*GATE_UP), matrix("ffn_down"), norm("post_ffn_norm"),
        )  # fmt: skip

    def _vector(self, name: str) -> Tensor:
        return self._joined((name,), torch.float32)

    def _matrix(self, *names: str) -> Tensor:
        return self._joined(names, self._dtype)

    def _joined(self, names: tuple[str, ...], dtype: torch.dtype) -> Tensor:
        """The tensors of ``names``, one below the other."""
        shapes = [self._shapes[name] for name in names]
        rows = sum(shape[0] for shape in shapes)
        whole = torch.empty((rows, *shapes[0][1:]), dtype=dtype, device=self._device)
        start = 0
        for name, shape in zip(names, shapes, strict=True):
            whole[start : start + shape[0]].copy_(as_tensor(self._checkpoint.read(name)))
            start += shape[0]
            self._done += self._checkpoint.tensors[name].stored_bytes
            self._progress(Progress("read", self._done, self._total))
        return whole


def as_tensor(values: NDArray[Any]) -> Tensor:
    """``values`` as a tensor of the same type on the host, copied only if they can't be shared."""
    writable = values if values.flags.writeable else values.copy()
    if values.dtype.name == "bfloat16":  # of ml_dtypes, unknown to torch
        return torch.from_numpy(writable.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(writable)
