"""mlx-vlm's conversions: the prefix ``language_model.``, HF names inside, half order.

Rules: model.md 4.3. Quantised or not is a question for each module, and not
for this layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .assembly import Form
from .layout import Named
from .names import MLX
from .rope import half_style

if TYPE_CHECKING:
    from .source import Source


def _has_prefix(source: Source) -> bool:
    return any(name.startswith("language_model.") for name in source.stored)


LAYOUT: Final = Named(Form(name="mlx", names=MLX), _has_prefix, half_style)
