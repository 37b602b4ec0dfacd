"""HF names without the multimodal wrapper, half order: text-only exports (model.md 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .assembly import Form
from .layout import Named
from .names import BARE
from .rope import half_style

if TYPE_CHECKING:
    from .source import Source


def _has_hf_names(source: Source) -> bool:
    modules = [module for module in source.modules if module.startswith("model.layers.")]
    return all(
        any(module.endswith(ending) for module in modules)
        for ending in (".self_attn.gate_proj", ".pre_feedforward_layernorm")
    )


LAYOUT: Final = Named(Form(name="bare", names=BARE), _has_hf_names, half_style)
