"""The small floating point formats: from codes to float32, exactly (model.md 4.5).

Rules: codes are looked up in tables. A code that means NaN stays NaN; who
reads it refuses what is not finite.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_POSITIVE: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)

E2M1: Final = _POSITIVE + tuple(-value for value in _POSITIVE)
"""The 16 values of e2m1 by code: bit 3 is the sign."""


def from_e4m3(codes: NDArray[Any]) -> Floats:
    """Values of e4m3 codes, one a byte; 0x7f and 0xff are NaN, there is no infinity."""
    return _table(ml_dtypes.float8_e4m3fn).take(codes.view(np.uint8))


def from_e8m0(codes: NDArray[Any]) -> Floats:
    """Scales 2^(code - 127), one a byte; 255 is NaN."""
    return _table(ml_dtypes.float8_e8m0fnu).take(codes.view(np.uint8))


@cache
def _table(dtype: type) -> Floats:
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
