"""Today's multimodal export: the prefix ``model.language_model.``, half order, offset norms.

Rules: an older export has the same names and the same configuration, and its
rows are in pairs (model.md 4.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .assembly import Form
from .layout import Named
from .names import HF
from .rope import hf_style

if TYPE_CHECKING:
    from .source import Source


def _has_prefix(source: Source) -> bool:
    return any(name.startswith("model.language_model.") for name in source.stored)


LAYOUT: Final = Named(Form(name="hf", names=HF), _has_prefix, hf_style)
