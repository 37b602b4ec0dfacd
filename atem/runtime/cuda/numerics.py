"""The arithmetic of a layer: norms, rotation, projection, attention (model.md 1.3, 1.4).

Rules: norms, the scale of q and the rotation work in float32 and are rounded
once, by whoever stores the result. Nothing here knows of caches or layers.
"""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

FEW: Final = 16
"""Rows up to which the CPU multiplies faster from the other side."""


def rms(x: Tensor, eps: float, weight: Tensor | None = None) -> Tensor:
    """``x`` over the root of its mean square along the last axis, times ``weight``; float32."""
    return F.rms_norm(x.float(), (x.shape[-1],), weight, eps)


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``rms`` with a float32 ``weight`` (1 is already added), rounded once to the type of x."""
    return rms(x, eps, weight).to(x.dtype)


def project(x: Tensor, weight: Tensor) -> Tensor:
    """x [N, in] times the transpose of ``weight`` [out, in]: [N, out], contiguous."""
    rows = len(x)
    if rows > FEW or x.device.type != "cpu" or x.dtype != torch.float32:
        return F.linear(x, weight)
    # The weights are read once either way, and in this order at up to four times the speed. A
    # single row would fall back to a slow matrix-vector product, so it goes twice.
    both = x if rows > 1 else torch.cat((x, x))
    return (weight @ both.t()).t()[:rows].contiguous()


def rotation(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines [N, 1, D] of ``positions`` [N], float32 (half-split order)."""
    steps = torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device)
    angles = positions[:, None].float() * (1.0 / theta ** (steps / head_dim))
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1)[:, None], torch.cat((-sin, sin), -1)[:, None]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [N, heads, D] turned by its positions: pairs (j, j + D/2)."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Softmax attention: q [B, K, Q, D], k and v [B, K, S, D], bias that adds to [B, K, Q, S]."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def attend_split(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, parts: int) -> Tensor:
    """As ``attend``, with the keys in ``parts``, which divides their number.

    A fused kernel gives all keys of a head to one processor of a GPU. With one
    query a head that leaves most of them idle, so long rows are cut here.
    """
    size, width = k.shape[2:]
    scores = (q @ k.transpose(-1, -2)).float() * width**-0.5 + bias
    weights = scores.softmax(-1).to(q.dtype)
    pieces = weights.view(*q.shape[:3], parts, size // parts).transpose(2, 3)
    values = v.view(*v.shape[:2], parts, size // parts, width)
    mixed: Tensor = (pieces @ values).sum(2, dtype=torch.float32).to(q.dtype)
    return mixed
