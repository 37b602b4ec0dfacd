"""Four-bit floats (e2m1) with block scales: NVFP4 and MXFP4.

Rules: model.md 4.5. NVFP4 has an e4m3 scale for 16 inputs and, but in MLX, a
float32 one for the whole tensor; MXFP4 has an e8m0 scale for 32 inputs. Codes
are two a byte, the low nibble the even index; MLX has the same bytes in uint32 words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .blocks import Blocks, Groups, grouped_shape, matrix_shape, require
from .floats import E2M1, from_e4m3, from_e8m0
from .packing import nibbles

if TYPE_CHECKING:
    from ..source import StoredTensor
    from .blocks import Factor

NV_GROUP: Final = 16
MX_GROUP: Final = 32

_WORDS: Final = ("U8", "U32")


def nvfp4(codes: StoredTensor, scales: StoredTensor, factor: Factor | None = None) -> Blocks:
    """The codec of NVFP4: e2m1 * e4m3 and, with ``factor``, * or / the tensor's own scale.

    Raises TensorError for types and shapes that don't fit, as :func:`mxfp4` does.
    """
    shape = matrix_shape(codes, _WORDS, 4)
    require(scales, ("F8_E4M3", "U8"), grouped_shape(scales, shape, NV_GROUP))
    groups = Groups(scales, NV_GROUP, from_e4m3)
    return Blocks("NVFP4", shape, codes, _values, scales=groups, factor=factor)


def mxfp4(codes: StoredTensor, scales: StoredTensor) -> Blocks:
    """The codec of MXFP4: e2m1 * 2^(scale - 127)."""
    shape = matrix_shape(codes, _WORDS, 4)
    require(scales, ("U8", "F8_E8M0"), grouped_shape(scales, shape, MX_GROUP))
    return Blocks("MXFP4", shape, codes, _values, scales=Groups(scales, MX_GROUP, from_e8m0))


_values = partial(nibbles, values=E2M1)
