"""Where rows of a pass find their keys: each in its own slot, or all in one.

Rules: new keys are written first and read with the old ones. What a row must
not see gets minus infinity by one bias for all layers of a kind, made once a
pass (model.md 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import torch

from .cache import aligned
from .numerics import attend, attend_split

if TYPE_CHECKING:
    from torch import Tensor

    from .cache import Cache

SPLIT: Final = 1024
"""Keys that a GPU gives to one processor, where it has a single query for them."""


PIECE: Final = 64
"""Rows whose keys the CPU looks up at once."""


class Reach(NamedTuple):
    """What rows do in layers of one kind.

    They write at ``places`` [N], and read the first ``length`` places with ``bias`` [N, length].
    """

    places: Tensor
    length: int
    bias: Tensor


def reaches(
    cache: Cache, positions: Tensor, last: Tensor, bound: int, dtype: torch.dtype
) -> dict[bool, Reach]:
    """The reach of rows at ``positions`` [N], by whether a layer is sliding.

    ``last`` [N or 1] is the newest position that the row's slot then holds,
    ``bound`` is above all of them.
    """
    rows, newest = positions[:, None], last[:, None]
    ring = min(cache.ring, bound)
    places = torch.arange(bound, device=positions.device)
    # A place of a ring holds the newest position that falls on it.
    held = newest - (newest - places[:ring]) % cache.ring
    near = (held >= 0) & (held <= rows) & (held > rows - cache.window)
    return {
        True: Reach(positions % cache.ring, ring, _bias(near, dtype)),
        False: Reach(positions, bound, _bias(places <= rows, dtype)),
    }


def _bias(visible: Tensor, dtype: torch.dtype) -> Tensor:
    hidden = torch.full((), -torch.inf, dtype=dtype, device=visible.device)
    return torch.where(visible, torch.zeros_like(hidden), hidden)


class EachItsOwn:
    """Decoding: row r is the next token of slot r. The heads of a group are its queries."""

    def __init__(self, cache: Cache, positions: Tensor, bound: int, dtype: torch.dtype) -> None:
        self._cache = cache
        self._slots = torch.arange(len(positions), device=positions.device)
        self._reaches = reaches(cache, positions, positions, bound, dtype)

    def __call__(self, layer: int, q: Tensor, kv: Tensor) -> Tensor:
        """See :class:`.model.Attend`."""
        cache, reach = self._cache.layers[layer], self._reaches[self._cache.sliding[layer]]
        cache[self._slots, :, reach.places] = kv
        k, v = cache[: len(q), :, : reach.length].chunk(2, 1)  # [B, K, S, D]
        grouped = q.view(len(q), k.shape[1], -1, q.shape[-1])
        return _few_queries(grouped, k, v, reach.bias[:, None, None]).flatten(1)


class AllInOne:
    """Filling: the rows are tokens of one slot that follow each other, from ``start`` on."""

    def __init__(self, cache: Cache, slot: int, start: int, size: int) -> None:
        dtype, device = cache.layers[0].dtype, cache.layers[0].device
        self._cache, self._slot = cache, slot
        bound = min(aligned(start + size), cache.length)
        self.positions = torch.arange(start, start + size, device=device)
        self._reaches = reaches(cache, self.positions, self.positions[-1:], bound, dtype)
        # Early rows see few keys. On a GPU one big piece is worth more than what they save.
        step = size if device.type == "cuda" else PIECE
        pieces = [(first, min(first + step, size)) for first in range(0, size, step)]
        self._pieces = [(first, last, aligned(start + last)) for first, last in pieces]

    def __call__(self, layer: int, q: Tensor, kv: Tensor) -> Tensor:
        """See :class:`.model.Attend`."""
        cache = self._cache.layers[layer][self._slot]
        reach = self._reaches[self._cache.sliding[layer]]
        cache[:, reach.places] = kv.transpose(0, 1)
        k, v = cache[:, None, : reach.length].chunk(2)  # [K, 1, S, D], one for a group
        grouped = q.view(len(q), len(k), -1, q.shape[-1]).permute(1, 2, 0, 3)  # [K, G, T, D]
        shared = (-1, grouped.shape[1], -1, -1)
        k, v = k.expand(shared), v.expand(shared)
        mixed = q.new_empty(q.shape)
        for first, last, seen in self._pieces:
            bias = reach.bias[first:last, :seen]
            part = attend(grouped[:, :, first:last], k[:, :, :seen], v[:, :, :seen], bias)
            mixed[first:last] = part.permute(2, 0, 1, 3).reshape(last - first, *q.shape[1:])
        return mixed.flatten(1)


def _few_queries(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    parts = k.shape[2] // SPLIT
    if q.is_cuda and parts > 1 and k.shape[2] % parts == 0:
        return attend_split(q, k, v, bias, parts)
    return attend(q, k, v, bias)
