"""MLX's affine quantisation: value = scale * code + bias, for each group of inputs.

Rules: ``weight`` holds uint32 words [out, in * bits / 32], ``scales`` and
``biases`` [out, in / group] (model.md 4.3); 3-, 5- and 6-bit codes cross the words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .blocks import Blocks, Groups, grouped_shape, matrix_shape, require
from .packing import nibbles, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..source import StoredTensor
    from .blocks import Floats

BITS: Final = (2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)

_FLOATS: Final = ("F16", "BF16", "F32")


def affine(
    weight: StoredTensor, scales: StoredTensor, biases: StoredTensor, *, bits: int, group: int
) -> Blocks:
    """The codec of a module quantised with ``bits`` (of BITS) and ``group`` (of GROUPS).

    Raises TensorError for types and shapes that don't fit.
    """
    shape = matrix_shape(weight, ("U32",), bits)
    for part in (scales, biases):
        require(part, _FLOATS, grouped_shape(part, shape, group))
    return Blocks(
        encoding=f"MLX{bits}",
        shape=shape,
        codes=weight,
        unpack=partial(_codes, bits),
        scales=Groups(scales, group, _float32, signed=True),
        biases=Groups(biases, group, _float32, signed=True),
    )


def _codes(bits: int, data: NDArray[np.uint8]) -> Floats:
    if bits == 4:
        return nibbles(data, range(16))
    return unpack(data, bits).astype(np.float32)


def _float32(stored: NDArray[Any]) -> Floats:
    return stored.astype(np.float32)
