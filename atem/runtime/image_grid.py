"""How many tokens an image takes in the prompt.

Rules: arithmetic on its size alone; no pixel is looked at. Source: model.md 2.2, 2.4.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Final

SIDE: Final = 28
"""Pixels of a side of what one token shows: two patches of 14."""

MOST: Final = 4096
"""Tokens that an image takes at most, but for one that is much longer than wide."""

AROUND: Final = 2
"""``<|image_start|>`` and ``<|image_end|>``."""


def image_grid(height: int, width: int, most: int = MOST) -> tuple[int, int]:
    """Rows and columns of tokens of an image of so many pixels.

    Of the grids around the ideal one it is that whose shape is nearest to the
    image's.
    """
    rows, columns = height / SIDE, width / SIDE
    if rows * columns > most:
        ratio = columns / rows
        rows = (most / ratio) ** 0.5
        columns = rows * ratio
    # Of two that are as near, the model takes the first in the order of this very set.
    near = set(
        product((math.floor(rows), math.ceil(rows)), (math.floor(columns), math.ceil(columns)))
    )
    fitting = [(r, c) for r, c in near if r >= 1 and c >= 1 and r * c <= most]
    fitting = fitting or [(max(1, round(rows)), max(1, round(columns)))]
    return min(fitting, key=lambda grid: abs(grid[0] / grid[1] - height / width))


def image_tokens(height: int, width: int) -> int:
    """The tokens of an image of so many pixels, the two around it included."""
    rows, columns = image_grid(height, width)
    return rows * columns + AROUND
