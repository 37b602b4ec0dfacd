"""Orders of rows: which stored row is row i of canonical q, k and gate.

Rules: index arrays only, so that they compose and apply to any codec
(model.md 4.3: groups of quantised values run along the input axis).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Order: TypeAlias = NDArray[np.intp]


def half_from_pairs(heads: int, head_dim: int) -> Order:
    """Rows in the half order, out of rows stored in pairs, in every head (model.md 1.4)."""
    rows = np.arange(heads * head_dim, dtype=np.intp)
    return rows.reshape(heads, head_dim // 2, 2).transpose(0, 2, 1).reshape(-1)


def fused(heads: int, head_dim: int, place: int) -> Order:
    """Rows of q (place 0) or the gate (1), out of a stored [2*H*D, d] tensor (model.md 4.2)."""
    rows = np.arange(2 * heads * head_dim, dtype=np.intp)
    return rows.reshape(heads, 2, head_dim)[:, place].reshape(-1)
