"""The factor on q, which two schemas write as different numbers (model.md 3.2, 4.4).

Rules: names tell which number it is; its size only says whether that can be
true. HF writes what multiplies the normalised q (3.87), flat files that times
the root of head_dim (43.78 at 128).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ...errors import ConfigError

if TYPE_CHECKING:
    from .family import Names

RELEASED: Final = 3.87
"""The factor of the released model, as HF writes it."""

RELEASED_FLAT: Final = 43.7840518911
"""The same, times the root of HEAD_DIM, as flat files write it."""

HEAD_DIM: Final = 128
SOFTMAX: Final = RELEASED / math.sqrt(HEAD_DIM)
"""What multiplies dot products of unit-variance q and k in the released model: 0.342."""

LARGEST_HF: Final = 20.0
SMALLEST_FLAT: Final = 10.0


def hf_factor(factor: float, head_dim: int, names: Names, where: str) -> float:
    """``factor`` as HF means it. Raises ConfigError if it looks like the other schema's number.

    The released factor is right at any head size. Any other has to lie on its
    own side: at most 20 under HF names, at least 10 under flat ones, and
    nearer to its own reading of the released factor than to the other's. At
    the released head size it has to be within a factor of two of 0.342 in the
    softmax.
    """
    root = math.sqrt(head_dim)
    # Flat numbers carry a rounded root; ten digits are what any written factor holds.
    own = factor if names == "hf" else float(f"{factor / root:.10g}")
    middle = RELEASED * math.sqrt(root)
    fits = {
        "hf": factor <= min(LARGEST_HF, middle),
        "flat": factor >= max(SMALLEST_FLAT, middle),
    }
    near = head_dim != HEAD_DIM or 0.5 <= own / RELEASED <= 2
    if math.isclose(own, RELEASED, rel_tol=0.01) or (fits[names] and near):
        return own
    raise ConfigError(
        f"{where}qk_scale_factor={factor} with head_dim={head_dim}, read as {names} names say, "
        f"makes {own / root:.4g} in the softmax (released: {SOFTMAX:.3f} at head_dim {HEAD_DIM}). "
        f"HF names mean {RELEASED}, flat names {RELEASED} * sqrt(head_dim) = "
        f"{RELEASED * root:.6g}: the number is the other schema's, or wrong"
    )


def require_attention_scale(scale: float, factor: float, head_dim: int, key: str) -> None:
    """Raise ConfigError unless GGUF's ``scale`` repeats ``factor``, in either of its readings.

    Readers differ on whether it is the factor or the softmax's scale (model.md 4.4),
    so it decides nothing.
    """
    readings = (factor, factor / math.sqrt(head_dim))
    if not any(math.isclose(scale, reading, rel_tol=0.01) for reading in readings):
        raise ConfigError(
            f"{key}={scale} is neither the factor on q ({readings[0]:.4g}) nor the scale of the "
            f"softmax ({readings[1]:.4g}) that the file's q norm gives; the file contradicts itself"
        )
