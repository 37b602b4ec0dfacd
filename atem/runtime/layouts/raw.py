"""The older flat text export: ``output_gate_proj``, rows in pairs, offset norms.

Rules: its ``post_attention_layernorm`` is the pre-FFN norm (model.md 4.1). The
configuration may say that rows are in the half order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .assembly import Form
from .layout import Named
from .names import RAW
from .rope import flat_style

if TYPE_CHECKING:
    from .source import Source


def _has_output_gate(source: Source) -> bool:
    return any(
        module.startswith("model.layers.") and module.endswith(".self_attn.output_gate_proj")
        for module in source.modules
    )


LAYOUT: Final = Named(Form(name="raw", names=RAW), _has_output_gate, flat_style)
