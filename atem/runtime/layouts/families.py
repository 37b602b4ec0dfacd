"""The families of safetensors files that their names tell: mlx, hf, raw and bare (model.md 4.1).

Rules: one row for each, in the order in which they are asked (model.md 4.6).
Quantised or not is a question for each module, and not for a layout.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .assembly import Form
from .layout import Named
from .names import BARE, HF, MLX, RAW
from .rope import flat_style, half_style

if TYPE_CHECKING:
    from .source import Source


def _begins(prefix: str, source: Source) -> bool:
    return any(name.startswith(prefix) for name in source.stored)


def _has(endings: tuple[str, ...], source: Source) -> bool:
    """Whether layers named as in raw and bare files have modules of all these ``endings``."""
    modules = [module for module in source.modules if module.startswith("model.layers.")]
    return all(any(module.endswith(ending) for module in modules) for ending in endings)


_MLX: Final = partial(_begins, "language_model.")
_HF: Final = partial(_begins, "model.language_model.")
_RAW: Final = partial(_has, (".self_attn.output_gate_proj",))
_BARE: Final = partial(_has, (".self_attn.gate_proj", ".pre_feedforward_layernorm"))

LAYOUTS: Final = (
    Named(Form(name="mlx", names=MLX), _MLX, partial(half_style, firm=True)),
    Named(Form(name="hf", names=HF), _HF, partial(half_style, firm=False)),
    Named(Form(name="raw", names=RAW), _RAW, flat_style),
    Named(Form(name="bare", names=BARE), _BARE, partial(half_style, firm=True)),
)
"""mlx-vlm's conversions, today's multimodal export, the older flat one, text-only exports."""
