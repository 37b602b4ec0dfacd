"""The model, as training needs it: Muse Glimmer's text decoder at 1.5 million parameters.

Rules: the arithmetic is model.md 1.3 in float32, whole sequences at a time, no
cache; the names are those of a checkpoint, so that exporting is saving. The
head is computed only where something is to be learnt.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from atem.runtime.config import ModelConfig, layer_pattern

CONFIG: Final = ModelConfig(
    vocab_size=1024,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=6,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    layer_types=layer_pattern(6),
    sliding_window=128,
    max_position_embeddings=2048,
    rope_theta=10000.0,
    output_multiplier=math.sqrt(2.0),  # 1 / sqrt(hidden / 256), as in the released model
    # The rest as released.
    rms_norm_eps=1e-5,
    post_norm_eps=1e-8,
    qk_scale_factor=3.87,
    final_logit_softcapping=20.0,
)
HEADS: Final = CONFIG.num_attention_heads
KV_HEADS: Final = CONFIG.num_key_value_heads
WIDTH: Final = CONFIG.head_dim


def rms(x: Tensor, eps: float = CONFIG.rms_norm_eps) -> Tensor:
    """``x`` scaled to a mean square of 1 along its last axis."""
    return F.rms_norm(x, x.shape[-1:], eps=eps)


class OffsetNorm(nn.Module):
    """An RMS norm whose weight is an offset from 1."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(CONFIG.hidden_size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """``x`` normed."""
        return F.rms_norm(x, x.shape[-1:], 1 + self.weight, self.eps)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A projection without bias, small at first."""
    made = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(made.weight, std=0.5 / math.sqrt(inputs))
    return made


class Attention(nn.Module):
    """Grouped attention with a gate; with rope and a window unless ``full``."""

    def __init__(self, *, full: bool) -> None:
        super().__init__()
        hidden, inner, kv = CONFIG.hidden_size, HEADS * WIDTH, KV_HEADS * WIDTH
        self.full = full
        self.q_proj, self.gate_proj = linear(hidden, inner), linear(hidden, inner)
        self.k_proj, self.v_proj = linear(hidden, kv), linear(hidden, kv)
        self.o_proj = linear(inner, hidden)

    def forward(self, h: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """What is read at each position, behind the gate."""
        batch, length, _ = h.shape
        q = rms(self.q_proj(h).view(batch, length, HEADS, WIDTH)) * CONFIG.qk_scale_factor
        k = rms(self.k_proj(h).view(batch, length, KV_HEADS, WIDTH))
        v = self.v_proj(h).view(batch, length, KV_HEADS, WIDTH)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if not self.full:
            q, k = rotated(q, turn), rotated(k, turn)
        k, v = (x.repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.full else near(q, k, v)
        a = a.transpose(1, 2).reshape(batch, length, HEADS * WIDTH)
        return self.o_proj(a * torch.sigmoid(self.gate_proj(h)))


def rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """``x`` [B, H, T, D] with each pair (j, j + D/2) turned by its position."""
    cos, sin = turn
    one, two = x.chunk(2, -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)


class Feed(nn.Module):
    """The gated feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        hidden, inner = CONFIG.hidden_size, CONFIG.intermediate_size
        self.gate_proj, self.up_proj = linear(hidden, inner), linear(hidden, inner)
        self.down_proj = linear(inner, hidden)

    def forward(self, h: Tensor) -> Tensor:
        """Each row by itself."""
        return self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Layer(nn.Module):
    """Attention, then the feed-forward part, each normed before and after."""

    def __init__(self, *, full: bool) -> None:
        super().__init__()
        self.input_layernorm = OffsetNorm(CONFIG.rms_norm_eps)
        self.self_attn = Attention(full=full)
        self.post_attention_layernorm = OffsetNorm(CONFIG.post_norm_eps)
        self.pre_feedforward_layernorm = OffsetNorm(CONFIG.rms_norm_eps)
        self.mlp = Feed()
        self.post_feedforward_layernorm = OffsetNorm(CONFIG.post_norm_eps)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """The residual stream behind this layer."""
        a = self.self_attn(self.input_layernorm(x), turn)
        x = x + self.post_attention_layernorm(a)
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class Nano(nn.Module):
    """The decoder. Called with ids [B, T], and where [B, T] the next token's logits are wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(CONFIG.vocab_size, CONFIG.hidden_size)
        full = [kind == "full_attention" for kind in CONFIG.layer_types]
        self.layers = nn.ModuleList([Layer(full=each) for each in full])
        self.norm = nn.RMSNorm(CONFIG.hidden_size, eps=CONFIG.rms_norm_eps)
        self.lm_head = linear(CONFIG.hidden_size, CONFIG.vocab_size)

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        """Logits [N, vocabulary] at the N places that are wanted, row by row."""
        return self.logits(self.streams(ids)[-1][wanted])

    def streams(self, ids: Tensor) -> list[Tensor]:
        """The residual stream [B, T, d] behind each layer."""
        turn, x = turns(ids.shape[1]), rms(self.embed_tokens(ids))
        return [x := layer(x, turn) for layer in self.layers]

    def logits(self, x: Tensor) -> Tensor:
        """Final norm, head, multiplier, cap."""
        cap = CONFIG.final_logit_softcapping
        assert cap is not None
        scores = self.lm_head(self.norm(x)) * CONFIG.output_multiplier
        return cap * torch.tanh(scores / cap)


def turns(length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines [T, D/2] of the positions from 0."""
    angles = torch.outer(torch.arange(length).float(), frequencies())
    return angles.cos(), angles.sin()


def frequencies() -> Tensor:
    """The angle by which each pair turns from one position to the next."""
    return CONFIG.rope_theta ** (-torch.arange(0, WIDTH, 2).float() / WIDTH)


def near(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention [B, H, T, D] of each query to itself and the 127 keys before it.

    In blocks as long as the window, each beside the one before it, because
    a mask over all of T costs most of what is masked.
    """
    batch, heads, length, width = q.shape
    window = CONFIG.sliding_window
    count = -(-length // window)
    q, k, v = (F.pad(x, (0, 0, 0, count * window - length)) for x in (q, k, v))
    k, v = (F.pad(x, (0, 0, window, 0)) for x in (k, v))
    blocks = [  # [B, blocks, H, keys, D]
        x.unfold(2, size, window).permute(0, 2, 1, 4, 3)
        for x, size in ((q, window), (k, 2 * window), (v, 2 * window))
    ]
    q, k, v = (x.reshape(batch * count, heads, -1, width) for x in blocks)
    mask = band(count).expand(batch, -1, -1, -1, -1).reshape(batch * count, 1, window, -1)
    a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    a = a.view(batch, count, heads, window, width).transpose(1, 2)
    return a.reshape(batch, heads, count * window, width)[:, :, :length]


def band(count: int) -> Tensor:
    """True [blocks, 1, W, 2W] where a query sees a key of its block or of the one before."""
    window = CONFIG.sliding_window
    query, key = torch.arange(window)[:, None], torch.arange(2 * window)
    seen = (key > query) & (key <= query + window)
    blocks = torch.arange(count)[:, None, None, None]
    return seen & ((blocks > 0) | (key >= window))
