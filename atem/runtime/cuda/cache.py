"""Keys and values of all running requests: a slot for each, in every layer.

Rules: a sliding layer keeps a ring, position p at place p % ring; a full layer
keeps every position at its own place. All slots have one size, which follows
the longest request. Buffers are replaced when they must grow and stay where
they are otherwise, so that captured passes may hold on to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import torch

from ...errors import OutOfMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ..config import ModelConfig

ALIGN: Final = 64
"""Lengths are multiples of this: fused attention wants the rows of its bias aligned."""

SHORTEST: Final = 256
"""Positions that a full layer has room for at least."""

Block: TypeAlias = "tuple[Tensor, ...]"
"""Keys and values of neighbouring positions, [2K, n, D] for each layer."""


class Cache:
    """``layers``: a buffer [slots, 2K, length, D] each, keys before values.

    ``slack`` is how far behind the window a position may lie and still be read.
    ``limit`` bounds the bytes of all buffers.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        context: int,
        slack: int,
        max_slots: int,
        limit: int | None = None,
    ) -> None:
        self.window = config.sliding_window
        self.ring = aligned(self.window + slack)
        self.sliding = [kind == "sliding_attention" for kind in config.layer_types]
        self.slots = self.length = 0
        self._longest, self._max_slots, self._limit = aligned(context), max_slots, limit
        shape = (0, 2 * config.num_key_value_heads, 0, config.head_dim)
        self.layers = [torch.zeros(shape, device=device, dtype=dtype) for _ in self.sliding]

    def fits(self, slots: int, length: int) -> bool:
        """Whether ``slots`` requests have room, the longest of ``length`` positions."""
        return slots <= self.slots and length <= self.length

    def grow(self, slots: int, length: int) -> None:
        """Make that room, and no more than that; what the first ``slots`` hold is kept.

        Raises OutOfMemory above the limit, and what torch raises where memory
        ends; then all that had room still has.
        """
        slots, length = self.padded(slots), self.roomy(length)
        self._require(slots, length)
        before = self.slots, self.length
        self.slots, self.length = min(slots, before[0]), min(length, before[1])
        for number, old in enumerate(self.layers):
            self.layers[number] = _resized(old, slots, self._places(number, length))
        self.slots, self.length = slots, length

    def padded(self, slots: int) -> int:
        """Slots that there are for ``slots`` requests: a power of two, or all."""
        return doubled(slots, 1, self._max_slots)

    def roomy(self, length: int) -> int:
        """Places that full layers have for ``length`` positions: a power of two, or the context."""
        return doubled(length, SHORTEST, self._longest)

    def nbytes(self, slots: int, length: int) -> int:
        """Bytes of the buffers for that many slots and places in full layers."""
        places = sum(self._places(number, length) for number in range(len(self.layers)))
        _, rows, _, width = self.layers[0].shape
        return slots * places * rows * width * self.layers[0].element_size()

    def move(self, source: int, target: int) -> None:
        """Copy what one slot holds to another."""
        for layer in self.layers:
            layer[target].copy_(layer[source])

    def read(self, slot: int, span: range) -> Block:
        """A copy of some of the positions that the slot holds."""
        return tuple(
            layer[slot].index_select(1, self._at(number, span))
            for number, layer in enumerate(self.layers)
        )

    def write(self, slot: int, blocks: Sequence[Block]) -> None:
        """Fill the slot from position 0 with what ``read`` gave, blocks of one size.

        Rings get what is still in the window of the position that follows.
        """
        size = blocks[0][0].shape[1] if blocks else 1
        end = size * len(blocks)
        for number, layer in enumerate(self.layers):
            first = max(0, end - self.window) // size if self.sliding[number] else 0
            if kept := blocks[first:]:
                rows = torch.cat([block[number] for block in kept], 1)
                layer[slot].index_copy_(1, self._at(number, range(first * size, end)), rows)

    def _at(self, number: int, span: range) -> Tensor:
        positions = torch.arange(span.start, span.stop, device=self.layers[0].device)
        return positions % self.ring if self.sliding[number] else positions

    def _places(self, number: int, length: int) -> int:
        return self.ring if self.sliding[number] else length

    def _require(self, slots: int, length: int) -> None:
        needed = self.nbytes(slots, length)
        if self._limit is not None and needed > self._limit:
            raise OutOfMemory(
                f"keys and values of {slots} requests of up to {length} tokens take {needed} bytes "
                f"and cache_bytes is {self._limit}; run fewer or shorter ones, or raise it"
            )


def _resized(old: Tensor, slots: int, length: int) -> Tensor:
    """Zeros where nothing was: what is masked is read too, and must be a number."""
    new = old.new_zeros((slots, old.shape[1], length, old.shape[3]))
    slots, length = min(slots, old.shape[0]), min(length, old.shape[2])
    new[:slots, :, :length] = old[:slots, :, :length]
    return new


def aligned(length: int) -> int:
    """The next multiple of ALIGN."""
    return -(-length // ALIGN) * ALIGN


def doubled(value: int, least: int, most: int) -> int:
    """The first of ``least``, twice that, ... and ``most`` that is not below ``value``."""
    size = least
    while size < value:
        size *= 2
    return min(size, most)
