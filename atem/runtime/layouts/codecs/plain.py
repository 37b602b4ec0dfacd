"""The plain codec: one tensor of float32, float16 or bfloat16, as it is.

Rules: values are copied out of the map, so that what was checked is what is
used even when the file changes afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ....errors import TensorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..source import StoredTensor

DTYPES: Final = ("F32", "F16", "BF16")


class Plain:
    """Reads ``tensor``; raises TensorError when its dtype is not a plain float one."""

    def __init__(self, tensor: StoredTensor) -> None:
        if tensor.dtype not in DTYPES:
            raise TensorError(
                f"{tensor.file}: {tensor.name} is stored as {tensor.dtype} and no scales are beside"
                f" it: without scales atem reads {', '.join(DTYPES)}"
            )
        self._tensor = tensor
        self.encoding = tensor.dtype
        self.shape = tensor.shape
        self.stored_bytes = tensor.nbytes
        self.parts = (tensor.name,)

    def read(self, rows: Sequence[int] | slice | None = None, /) -> NDArray[Any]:
        """The values (of some rows), copied, in the stored dtype."""
        stored = self._tensor.array()
        return np.array(stored if rows is None else stored[rows], order="C")
