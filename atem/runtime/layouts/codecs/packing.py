"""Small integers packed into bytes, back into one value each.

Rules: values follow one another from the lowest bit up, over the boundaries of
bytes and words: MLX's affine words (model.md 4.3) read as little-endian bytes,
and e2m1 pairs, whose low nibble is the even index (model.md 4.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Floats = NDArray[np.float32]

_TOGETHER: Final = 8  # eight values of n bits fill n bytes, whatever n is


def unpack(data: Bytes, bits: int) -> Bytes:
    """The codes in ``data`` [..., n * bits / 8], as [..., n]; n is a multiple of 8."""
    if bits == 8:
        return data
    groups = data.reshape(*data.shape[:-1], -1, bits)
    wide = np.zeros((*groups.shape[:-1], _TOGETHER), np.uint8)
    wide[..., :bits] = groups
    shifts = np.arange(_TOGETHER, dtype=np.uint64) * np.uint64(bits)
    codes: NDArray[np.uint64] = (wide.view("<u8") >> shifts) & np.uint64(2**bits - 1)
    return codes.astype(np.uint8).reshape(*data.shape[:-1], -1)


def nibbles(data: Bytes, values: Sequence[float]) -> Floats:
    """``values[code]`` of the 4-bit codes in ``data`` [..., n / 2], as [..., n]."""
    # One look-up a byte, of a pair of floats read as one number: five times as fast as two.
    byte = np.arange(256)
    pairs = np.asarray(values, np.float32)[np.stack([byte & 15, byte >> 4], axis=1)]
    return pairs.view(np.complex64)[:, 0].take(data).view(np.float32)
