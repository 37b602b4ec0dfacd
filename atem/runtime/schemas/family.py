"""Whose configuration it is, and in which names it is written (model.md 3.2, 6).

Rules: names decide. Three keys of each side are proof; without any of them,
keys that only one side writes are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...errors import ConfigError
from ..quoting import show

if TYPE_CHECKING:
    from collections.abc import Mapping

Names: TypeAlias = Literal["flat", "hf"]

MODEL_TYPES: Final = ("muse_glimmer", "muse_glimmer_text")

PROOF: Final[dict[Names, tuple[str, ...]]] = {
    "flat": ("output_soft_cap_temp", "no_rope_layers", "rope_is_neox_style"),
    "hf": ("final_logit_softcapping", "layer_rope_theta", "hidden_activation"),
}
HINTS: Final[dict[Names, tuple[str, ...]]] = {
    "flat": (
        "hidden_act", "every_n_layers_nope", "muse_glimmer_mlx_format", "use_qk_norm",
        "use_attn_output_gate", "normalize_tok_embeddings",
    ),
    "hf": ("rope_parameters",),
}  # fmt: skip


def require_family(raw: Mapping[str, Any], where: str = "") -> None:
    """Raise ConfigError unless ``model_type`` (or ``architectures``) is of this model."""
    kind, built = raw.get("model_type"), _architectures(raw)
    found = f"{where}model_type={show(kind)}, architectures={show(built)}"
    if kind == "muse_glimmer_assistant" or any("Assistant" in name for name in built):
        raise ConfigError(
            f"{found}: this is the drafter of Muse Glimmer, which makes no text alone; open the "
            "model's own folder"
        )
    ours = not built or any(name.startswith("MuseGlimmer") for name in built)
    if kind not in MODEL_TYPES and (kind is not None or not ours):
        raise ConfigError(
            f"{found}: not a Muse Glimmer (model_type {' or '.join(MODEL_TYPES)}); atem runs no "
            "other model"
        )


def _architectures(raw: Mapping[str, Any]) -> list[str]:
    built = raw.get("architectures")
    return [name for name in built if isinstance(name, str)] if isinstance(built, list) else []


def names_of(raw: Mapping[str, Any]) -> Names:
    """The side whose keys ``raw`` has. Raises ConfigError if it has both sides', or neither's."""
    for table in (PROOF, HINTS):
        sides = {side: [key for key in keys if key in raw] for side, keys in table.items()}
        match sides["flat"], sides["hf"]:
            case [], []:
                continue
            case _, []:
                return "flat"
            case [], _:
                return "hf"
            case flat, hf:
                raise ConfigError(
                    f"config.json mixes two schemas: {', '.join(flat)} (flat) beside "
                    f"{', '.join(hf)} (HF names); the same qk_scale_factor means two things in "
                    "them, so take the keys of one away"
                )
    raise ConfigError(
        "config.json tells no schema: it has neither text_config, nor one of "
        f"{', '.join(PROOF['hf'])} (HF names), nor one of {', '.join(PROOF['flat'])} (flat); "
        "take the config.json that came with the weights"
    )
