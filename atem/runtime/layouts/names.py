"""Names of stored tensors: which module of a file holds which canonical tensor (model.md 4.1).

Rules: tables only. A name is looked up from the canonical side, one lookup a
tensor, so renames can't chain: ``post_attention_layernorm`` is the
post-attention norm in HF names and the pre-FFN norm in raw ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Names:
    """The module (a stored name without ``.weight``) of every canonical tensor."""

    top: Mapping[str, str]
    """"embed", "norm" and "head" -> module."""
    layer: str
    """Prefix of a layer's modules, ``{}`` for its number."""
    parts: Mapping[str, str]
    """Part of a layer -> the rest of the module's name."""

    def module(self, name: str) -> str:
        """The module of the canonical tensor ``name``."""
        if name in self.top:
            return self.top[name]
        _, layer, part = name.split(".")
        return self.layer.format(layer) + self.parts[part]

    def shapeless(self) -> frozenset[str]:
        """Every module, with ``#`` for the layer's number."""
        layer = self.layer.format("#")
        return frozenset([*self.top.values(), *(layer + part for part in self.parts.values())])


def _tops(prefix: str, head: str = "lm_head") -> dict[str, str]:
    return {"embed": f"{prefix}embed_tokens", "norm": f"{prefix}norm", "head": head}


_SHARED: Final = {
    "attn_norm": "input_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj",
    "v": "self_attn.v_proj", "o": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
HF_PARTS: Final = _SHARED | {
    "gate": "self_attn.gate_proj",
    "post_attn_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffn_norm": "post_feedforward_layernorm",
}
RAW_PARTS: Final = _SHARED | {
    "gate": "self_attn.output_gate_proj",
    "post_attn_norm": "post_attn_norm",
    "ffn_norm": "post_attention_layernorm",
    "post_ffn_norm": "post_ffn_norm",
}

HF: Final = Names(_tops("model.language_model."), "model.language_model.layers.{}.", HF_PARTS)
BARE: Final = Names(_tops("model."), "model.layers.{}.", HF_PARTS)
RAW: Final = Names(_tops("model."), "model.layers.{}.", RAW_PARTS)
PACKED: Final = Names(
    _tops("model."), "model.layers.{}.", RAW_PARTS | {"gate": RAW_PARTS["q"]}
)  # q and gate lie in one tensor
MLX: Final = Names(
    _tops("language_model.model.", "language_model.lm_head"),
    "language_model.model.layers.{}.",
    HF_PARTS,
)

FAMILIES: Final[dict[str, Names]] = {
    "hf": HF, "raw": RAW, "bare": BARE, "packed": PACKED, "mlx": MLX,
}  # fmt: skip
"""Layout -> names, to say which one is nearest."""

VISION: Final = re.compile(
    r"(model\.)?(vision_tower|vision_encoder|vision_adapter|vision_projection)\."
)
"""Begin of the names of vision tensors, in every family (model.md 4.1)."""

DROPPED: Final = {
    "rotary buffers (the angles are computed)": re.compile(r"rotary_emb\.(freqs|inv_freq)$"),
}
"""What a note says -> end of stored names that no canonical tensor needs."""


def nearest(modules: Iterable[str]) -> str | None:
    """The layout that knows most of ``modules``; None when none knows any."""
    present = frozenset(re.sub(r"\.\d+\.", ".#.", module) for module in modules)
    known = {name: len(present & names.shapeless()) for name, names in FAMILIES.items()}
    best = max(known, key=lambda name: known[name])
    return best if known[best] else None
