"""The block types of GGUF, by the decoders of the package ``gguf``.

Rules: a block lies in one row, so that any rows can be decoded alone. A scale
that is not finite makes values that are not finite, whatever its codes (0 * inf
is NaN), so that looking at the values alone is enough.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ....errors import MissingExtra, TensorError
from .blocks import Blocks
from .plain import DTYPES, Plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..source import StoredTensor
    from . import Codec
    from .blocks import Floats

QUANTISED: Final = ("Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K")


def gguf_codec(tensor: StoredTensor) -> Codec:
    """The codec of ``tensor``; TensorError for a type that is not read."""
    if tensor.dtype in DTYPES:
        return Plain(tensor)
    if tensor.dtype in QUANTISED and len(tensor.shape) == 2:
        return Blocks(tensor.dtype, tensor.shape, tensor, partial(_values, tensor.dtype))
    raise TensorError(
        f"{tensor.file}: {tensor.name} {list(tensor.shape)} is stored as {tensor.dtype}; of GGUF, "
        f"atem reads {', '.join(DTYPES)} and, as matrices, {', '.join(QUANTISED)}: "
        "take another quantisation of the model"
    )


def _values(encoding: str, rows: NDArray[Any]) -> Floats:
    try:
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError as error:
        raise MissingExtra("gguf", "reading a GGUF file") from error
    values: Floats = dequantize(rows, GGMLQuantizationType[encoding])
    return values
