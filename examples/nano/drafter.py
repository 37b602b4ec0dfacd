"""The drafter: a small model that proposes nano's next tokens, a block at a time.

Rules: shapes, names and arithmetic are those of ``muse_glimmer_assistant``
(model.md 6), in float32, whole conversations at a time. It has no table and no
head of its own; nano's are used, and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from model import CONFIG, HEADS, KV_HEADS, WIDTH, Feed, linear, rotated, turns
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from model import Nano

BLOCK: Final = 8
"""Rows of a block: the token that is known, and 7 to propose."""

LAYERS: Final = 2
CAPTURED: Final = (1, 3, 4)
"""Layers of nano behind which its residual stream is read."""

WINDOW: Final = 256
"""A row sees rows at most this far from it."""


def norm(width: int) -> nn.RMSNorm:
    """An RMS norm with a plain weight, as all of the drafter's are."""
    return nn.RMSNorm(width, eps=CONFIG.rms_norm_eps)


class Encoder(nn.Module):
    """What nano knew at each position, in one row."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = linear(len(CAPTURED) * CONFIG.hidden_size, CONFIG.hidden_size)
        self.output_norm_enc = norm(CONFIG.hidden_size)

    def forward(self, streams: Tensor) -> Tensor:
        """Context rows [T, d] from what was captured [T, n * d]."""
        return self.output_norm_enc(self.fc(streams))


class Attention(nn.Module):
    """Queries from the blocks; keys and values from the context and the blocks."""

    def __init__(self) -> None:
        super().__init__()
        hidden, kv = CONFIG.hidden_size, KV_HEADS * WIDTH
        self.q_proj, self.o_proj = linear(hidden, HEADS * WIDTH), linear(HEADS * WIDTH, hidden)
        self.k_proj, self.v_proj = linear(hidden, kv), linear(hidden, kv)
        self.q_norm, self.k_norm = norm(WIDTH), norm(WIDTH)

    def forward(self, h: Tensor, context: Tensor, at: Tensor, mask: Tensor) -> Tensor:
        """The rows of the blocks after attention."""
        rows = torch.cat((context, h))
        q = self.q_norm(self.q_proj(h).view(len(h), HEADS, WIDTH)).transpose(0, 1)
        k = self.k_norm(self.k_proj(rows).view(len(rows), KV_HEADS, WIDTH)).transpose(0, 1)
        v = self.v_proj(rows).view(len(rows), KV_HEADS, WIDTH).transpose(0, 1)
        cos, sin = (table[at] for table in turns(int(at.max()) + 1))
        q = rotated(q, (cos[-len(h) :], sin[-len(h) :]))
        k, v = (x.repeat_interleave(HEADS // KV_HEADS, 0) for x in (rotated(k, (cos, sin)), v))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(a.transpose(0, 1).reshape(len(h), HEADS * WIDTH))


class Layer(nn.Module):
    """Attention and the feed-forward part, each normed before."""

    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm = norm(CONFIG.hidden_size)
        self.self_attn = Attention()
        self.post_attention_layernorm = norm(CONFIG.hidden_size)
        self.mlp = Feed()

    def forward(self, x: Tensor, context: Tensor, at: Tensor, mask: Tensor) -> Tensor:
        """The rows of the blocks behind this layer."""
        x = x + self.self_attn(self.input_layernorm(x), context, at, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Drafter(nn.Module):
    """Called with nano, what was captured of it, and places in it, proposes what follows each."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = norm(CONFIG.hidden_size)

    def forward(
        self, nano: Nano, ids: Tensor, read: Tensor, places: Tensor, mask_id: int
    ) -> Tensor:
        """Logits [N, BLOCK - 1, vocabulary] behind places [N], each of a known token.

        ``ids`` [T] are a conversation, and ``read`` what :func:`captured` gives for them.
        """
        context = self.encoder(read)
        known = torch.full((len(places), BLOCK), mask_id)
        known[:, 0] = ids[places]
        x = nano.embed_tokens(known.flatten())  # raw rows, without nano's norm
        block_at = (places[:, None] + torch.arange(BLOCK)).flatten()
        at = torch.cat((torch.arange(len(ids)), block_at))
        mask = visible(len(ids), places)
        for layer in self.layers:
            x = layer(x, context, at, mask)
        proposed = self.norm(x).view(len(places), BLOCK, -1)[:, 1:]
        return nano.lm_head(proposed)  # without multiplier and cap


def captured(streams: list[Tensor]) -> Tensor:
    """What the drafter reads of nano [T, n * d]: some of its streams, each [1, T, d]."""
    return torch.cat([streams[layer][0] for layer in CAPTURED], -1)


def visible(length: int, places: Tensor) -> Tensor:
    """True [N * BLOCK, T + N * BLOCK]: what nano had read before a place, and its own block."""
    query = (places[:, None] + torch.arange(BLOCK)).flatten()[:, None]
    start = places.repeat_interleave(BLOCK)[:, None]
    key = torch.arange(length)
    context = (key < start) & (query - key <= WINDOW)
    number = torch.arange(len(places)).repeat_interleave(BLOCK)
    return torch.cat((context, number[:, None] == number), 1)
