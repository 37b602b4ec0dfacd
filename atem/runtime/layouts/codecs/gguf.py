"""The block types of GGUF, by the decoders of the package ``gguf``.

Rules: a block lies in one row, so that any rows can be decoded alone; a bounded
piece is decoded at a time. A scale that is not finite makes values that are not
finite, whatever its codes (0 * inf is NaN), so that values alone are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ....errors import MissingExtra, TensorError
from .plain import DTYPES, Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..source import StoredTensor
    from . import Codec

QUANTISED: Final = ("Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K")

PIECE: Final = 1 << 22
"""Values decoded at a time, or one row: what bounds the memory beside the result."""


def gguf_codec(tensor: StoredTensor) -> Codec:
    """The codec of ``tensor``; TensorError for a type that is not read."""
    if tensor.dtype in DTYPES:
        return Plain(tensor)
    if tensor.dtype in QUANTISED and len(tensor.shape) == 2:
        return GGUFBlocks(tensor)
    raise TensorError(
        f"{tensor.file}: {tensor.name} {list(tensor.shape)} is stored as {tensor.dtype}; of GGUF, "
        f"atem reads {', '.join(DTYPES)} and, as matrices, {', '.join(QUANTISED)}: "
        "take another quantisation of the model"
    )


class GGUFBlocks:
    """Reads the matrix ``tensor`` [out, in], whose rows are blocks of one of QUANTISED."""

    def __init__(self, tensor: StoredTensor) -> None:
        self._tensor = tensor
        self.encoding = tensor.dtype
        self.shape = tensor.shape
        self.stored_bytes = tensor.nbytes
        self.parts = (tensor.name,)

    def read(self, rows: Sequence[int] | slice | None = None, /) -> NDArray[np.float32]:
        """All rows, or some, in float32. Raises TensorError for scales that are not finite."""
        width = self.shape[1]
        numbers = np.arange(self.shape[0])[slice(None) if rows is None else rows]
        values = np.empty((len(numbers), width), np.float32)
        step = max(1, PIECE // width)
        for start in range(0, len(numbers), step):
            piece = slice(start, start + step)
            values[piece] = self._decode(numbers[piece])
        return values

    def _decode(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        try:
            from gguf import GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError as error:
            raise MissingExtra("gguf", "reading a GGUF file") from error
        with np.errstate(over="ignore", invalid="ignore"):  # the check below says it better
            stored = self._tensor.array()[rows]
            values: NDArray[np.float32] = dequantize(stored, GGMLQuantizationType[self.encoding])
        good = np.isfinite(values)
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise TensorError(
                f"{self._tensor.file}: {self._tensor.name}: row {rows[row]}, column {column} is "
                f"{values[row, column]}, its block's scale can't be right; the file is damaged or "
                "was converted wrongly: fetch or convert it again"
            )
        return values
