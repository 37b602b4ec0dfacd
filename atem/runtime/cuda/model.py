"""The decoder (model.md 1.3): rows of ids in, rows of hidden state out.

Rules: a row is one token of one request; rows know of each other only through
``attend``, which has the keys and values. Static shapes, no branch on a value,
so that a pass can be recorded as it is. What is not needed again is overwritten:
fresh memory costs more than the arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F  # noqa: N812

from .numerics import norm, project, rms, rotate, rotation

if TYPE_CHECKING:
    from torch import Tensor

    from ..config import ModelConfig
    from .weights import Layer, Weights


class Attend(Protocol):
    """Stores new keys and values, and attends with the queries."""

    def __call__(self, layer: int, q: Tensor, kv: Tensor) -> Tensor:
        """q [N, H, D] over all that its request has with ``kv`` [N, 2K, D] added: [N, H*D]."""


class Model:
    """The weights with the configuration that gives them meaning."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config = config
        self.weights = weights
        heads, shared = config.num_attention_heads, config.num_key_value_heads
        factors = [config.qk_scale_factor] * heads + [1.0] * shared
        self._scale = torch.tensor(factors, device=weights.embed.device)[:, None]
        self._sliding = [kind == "sliding_attention" for kind in config.layer_types]

    def hidden(self, ids: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """The output of the last layer, [N, d], for ids [N] at positions [N]."""
        config = self.config
        eps, post_eps = config.rms_norm_eps, config.post_norm_eps
        turn = rotation(positions, config.head_dim, config.rope_theta)
        x = F.embedding(ids, self.weights.embed)
        x = rms(x, eps).to(x.dtype)
        for number, layer in enumerate(self.weights.layers):
            mixed = self._attention(number, layer, norm(x, layer.attn_norm, eps), turn, attend)
            x += norm(mixed, layer.post_attn_norm, post_eps)
            thought = _feed_forward(layer, norm(x, layer.ffn_norm, eps))
            x += norm(thought, layer.post_ffn_norm, post_eps)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [N, V] of rows [N, d], in float32: the multiplier first, then the cap."""
        config = self.config
        x = rms(hidden, config.rms_norm_eps, self.weights.norm).to(hidden.dtype)
        logits = project(x, self.weights.head).float() * config.output_multiplier
        cap = config.final_logit_softcapping
        return logits if cap is None else logits.div_(cap).tanh_().mul_(cap)

    def _attention(
        self, number: int, layer: Layer, h: Tensor, turn: tuple[Tensor, Tensor], attend: Attend
    ) -> Tensor:
        heads, shared = self.config.num_attention_heads, self.config.num_key_value_heads
        fused = project(h, layer.qkvg).view(len(h), -1, self.config.head_dim)
        qk = fused[:, : heads + shared]
        turned = rms(qk, self.config.rms_norm_eps) * self._scale
        qk.copy_(rotate(turned, *turn) if self._sliding[number] else turned)
        mixed = attend(number, fused[:, :heads], fused[:, heads : heads + 2 * shared])
        gate = fused[:, heads + 2 * shared :].flatten(1)
        return project(mixed.mul_(gate.sigmoid_()), layer.o)


def _feed_forward(layer: Layer, h: Tensor) -> Tensor:
    gate, up = project(h, layer.gate_up).chunk(2, -1)
    return project(F.silu(gate, inplace=True).mul_(up), layer.ffn_down)
