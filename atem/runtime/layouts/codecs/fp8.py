"""Eight-bit floats (e4m3): MXFP8 with block scales, and FP8 with one scale a tensor.

Rules: model.md 4.5. MXFP8 has an e8m0 scale for 32 inputs; MLX has its bytes in
uint32 words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .blocks import Blocks, Groups, factor, grouped_shape, matrix_shape, require
from .floats import from_e4m3, from_e8m0

if TYPE_CHECKING:
    from ..source import StoredTensor

MX_GROUP: Final = 32


def mxfp8(codes: StoredTensor, scales: StoredTensor) -> Blocks:
    """The codec of MXFP8: e4m3 * 2^(scale - 127). TensorError for parts that don't fit."""
    shape = matrix_shape(codes, ("F8_E4M3", "U32"), 8)
    require(scales, ("U8", "F8_E8M0"), grouped_shape(scales, shape, MX_GROUP))
    return Blocks("MXFP8", shape, codes, from_e4m3, scales=Groups(scales, MX_GROUP, from_e8m0))


def fp8(codes: StoredTensor, scale: StoredTensor) -> Blocks:
    """The codec of FP8: e4m3 * scale; TensorError unless ``scale`` is a single float32."""
    shape = matrix_shape(codes, ("F8_E4M3",), 8)
    return Blocks("FP8", shape, codes, from_e4m3, factor=factor(scale))
