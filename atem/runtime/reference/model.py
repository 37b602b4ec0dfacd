"""The forward pass of the text decoder, to be read beside model.md 1.

Rules: float32 throughout, so the casts of model.md 1.3 are not seen here. One
line for one line of the specification; nothing is fused or reordered for speed.
Keys are kept after norm and rope: all of them in a full layer, a ring of the
window and some slack in a sliding one (model.md 1.6).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checkpoint import layer_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..config import LayerType, ModelConfig

    Array = NDArray[np.float32]


class Model:
    """The decoder over ``read``, which is asked for a canonical tensor each time it is used.

    One that reads lazily streams a model that is too large for memory, tensor by tensor.
    """

    def __init__(self, config: ModelConfig, read: Callable[[str], NDArray[Any]]) -> None:
        self.config = config
        self._read = read

    def caches(self, slack: int) -> list[LayerCache]:
        """Empty caches for chunks of up to ``slack`` tokens."""
        return [LayerCache(self.config, kind, slack) for kind in self.config.layer_types]

    def hidden(self, ids: Sequence[int], caches: list[LayerCache]) -> Array:
        """The normalised output of the last layer, [T, d]; ``caches`` then hold ``ids`` too."""
        eps, post_eps = self.config.rms_norm_eps, self.config.post_norm_eps
        x = rms(float32(self._read("embed")[np.array(ids)]), eps)
        for layer, cache in enumerate(caches):
            w = partial(self._weight, layer)
            h = rms(x, eps) * (1 + w("attn_norm"))
            x = x + rms(self._attend(h, w, cache), post_eps) * (1 + w("post_attn_norm"))
            h = rms(x, eps) * (1 + w("ffn_norm"))
            m = linear(silu(linear(h, w("ffn_gate"))) * linear(h, w("ffn_up")), w("ffn_down"))
            x = x + rms(m, post_eps) * (1 + w("post_ffn_norm"))
        return rms(x, eps) * float32(self._read("norm"))

    def logits(self, hidden: Array) -> Array:
        """Logits [n, V] of rows [n, d]: the multiplier first, then the cap."""
        head = float32(self._read("embed" if self.config.tie_word_embeddings else "head"))
        logits = linear(hidden, head) * self.config.output_multiplier
        cap = self.config.final_logit_softcapping
        return logits if cap is None else cap * np.tanh(logits / cap)

    def loss(self, ids: Sequence[int], judged: Sequence[bool] | None = None) -> float:
        """Mean of -log p of each of ``ids`` after the first, in nats; or of those ``judged``."""
        at = np.arange(len(ids) - 1) if judged is None else np.flatnonzero(judged[1:])
        logits = self.logits(self.hidden(ids[:-1], self.caches(len(ids)))[at])
        logits = logits - logits.max(axis=-1, keepdims=True)
        chosen = logits[np.arange(len(at)), np.array(ids)[at + 1]]
        return float(np.mean(np.log(np.exp(logits).sum(axis=-1)) - chosen))

    def _weight(self, layer: int, part: str) -> Array:
        return float32(self._read(layer_name(layer, part)))

    def _attend(self, h: Array, w: Callable[[str], Array], cache: LayerCache) -> Array:
        c, heads = self.config, (len(h), -1, self.config.head_dim)
        q = rms(linear(h, w("q")).reshape(heads), c.rms_norm_eps) * c.qk_scale_factor
        k = rms(linear(h, w("k")).reshape(heads), c.rms_norm_eps)
        v = linear(h, w("v")).reshape(heads)
        positions = cache.length + np.arange(len(h))
        if cache.window is not None:
            q, k = rope(q, positions, c.rope_theta), rope(k, positions, c.rope_theta)
        cache.append(np.stack([k, v]))
        (keys, values), seen = cache.all()
        behind = positions[:, None] - seen  # [T, S]: a query sees itself and what is behind it
        mask = (behind >= 0) & (behind < (cache.window or cache.length))
        a = attention(q, keys, values, mask) * sigmoid(linear(h, w("gate")))
        return linear(a, w("o"))


class LayerCache:
    """Keys and values, [2, slots, K, D]; those of position p lie in slot p % slots."""

    def __init__(self, config: ModelConfig, kind: LayerType, slack: int) -> None:
        """``slack`` is the number of positions that can be added, or asked for, at once."""
        self.window = config.sliding_window if kind == "sliding_attention" else None
        self.length = 0
        slots = (self.window or 0) + slack
        self._kept = np.zeros((2, slots, config.num_key_value_heads, config.head_dim), np.float32)

    def append(self, new: Array) -> None:
        """Add [2, T, K, D], T at most ``slack``, for the positions that follow."""
        positions = np.arange(self.length, self.length + new.shape[1])
        if self.window is None and positions[-1] >= self._kept.shape[1]:
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)], axis=1)
        self._kept[:, positions % self._kept.shape[1]] = new
        self.length += new.shape[1]

    def all(self) -> tuple[Array, NDArray[np.int64]]:
        """What is kept, [2, S, K, D], and the position of each, [S], in the order of the slots."""
        slots, last = self._kept.shape[1], self.length - 1
        positions = last - (last - np.arange(min(slots, self.length))) % slots
        return self._kept[:, : len(positions)], positions

    def span(self, positions: range) -> Array:
        """A copy of some of the last ``slack`` positions, [2, T, K, D]."""
        return self._kept[:, np.array(positions) % self._kept.shape[1]]


def float32(values: NDArray[Any]) -> Array:
    """``values`` in float32, without a copy if they are."""
    return values.astype(np.float32, copy=False)


def linear(x: Array, weight: Array) -> Array:
    """x W^T: no projection has a bias."""
    product: Array = np.matmul(x, weight.T)
    return product


def rms(x: Array, eps: float) -> Array:
    """``x`` over the root of its mean square, along the last axis."""
    root: Array = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return x / root


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), in the form that can't overflow."""
    half: Array = 0.5 * np.tanh(0.5 * x)
    return 0.5 + half


def silu(x: Array) -> Array:
    """x sigmoid(x)."""
    return x * sigmoid(x)


def rope(x: Array, positions: NDArray[np.int64], theta: float) -> Array:
    """Rotate [T, heads, D] by position, pairs (j, j + D/2); angles in float32 (model.md 1.4)."""
    steps = np.arange(0, x.shape[-1], 2, dtype=np.float32) / x.shape[-1]
    angles = positions.astype(np.float32)[:, None, None] * (1 / theta**steps)
    first, second = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def attention(q: Array, k: Array, v: Array, mask: NDArray[np.bool_]) -> Array:
    """[T, H*D] of q [T, H, D] and k, v [S, K, D]: H/K neighbouring queries share a key head."""
    grouped = q.reshape(len(q), k.shape[1], -1, q.shape[2]).transpose(1, 2, 0, 3)  # [K, H/K, T, D]
    scores = grouped @ k.transpose(1, 2, 0)[:, None] * q.shape[2] ** -0.5  # [K, H/K, T, S]
    scores = np.where(mask, scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: Array = np.matmul(weights, v.transpose(1, 0, 2)[:, None])
    return mixed.transpose(2, 0, 1, 3).reshape(len(q), -1)
