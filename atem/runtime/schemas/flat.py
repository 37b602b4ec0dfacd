"""The flat schema of raw exports and packaged MLX artefacts (model.md 3.2).

Rules: its own names and its own defaults, of which two differ from HF's: the
context (16384) and the factor on q (times the root of head_dim).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from ...errors import ConfigError
from ..config import LayerCount, Positive, PositiveFloat  # noqa: TC001 (pydantic reads them)
from ..quoting import show
from .common import Shared, refuse_unimplemented, require_ids, same
from .layers import flags, layer_types
from .parse import build, parse
from .rope import rope_theta
from .scale import HEAD_DIM, RELEASED, RELEASED_FLAT, hf_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..checkpoint import RopeStyle
    from ..config import ModelConfig

FORMAT: Final = 1
"""The one version of packaged artefacts (``muse_glimmer_mlx_format``)."""


class _Style(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    rope_is_neox_style: bool = False


class FlatText(Shared):
    """The keys of a flat ``config.json``; ``output_soft_cap_temp`` null is no cap."""

    max_position_embeddings: Positive = 16384
    rope_theta: PositiveFloat = 500000.0
    qk_scale_factor: PositiveFloat | None = None
    output_soft_cap_temp: PositiveFloat | None = 20.0
    every_n_layers_nope: LayerCount = 4


def read(raw: Mapping[str, Any], *, vision: bool) -> ModelConfig:
    """A flat ``config.json``. Raises ConfigError."""
    text = parse(FlatText, raw, "config.json")
    refuse_unimplemented(raw, "")
    require_ids(raw, text.vocab_size, "")
    rope_style(raw)
    _require_format(raw)
    layers = text.num_hidden_layers
    period = text.every_n_layers_nope
    rotates = flags(raw, layers, period)
    own = {
        "layer_types": layer_types(raw, rotates, "no_rope_layers", period=period),
        "max_position_embeddings": text.max_position_embeddings,
        "rope_theta": rope_theta(raw, "", text.rope_theta),
        "qk_scale_factor": _factor(text),
        "final_logit_softcapping": text.output_soft_cap_temp,
        "vision": vision,
    }
    return build(text.shared() | own, "config.json")


def rope_style(raw: Mapping[str, Any]) -> RopeStyle:
    """Order of q and k rows by ``rope_is_neox_style``. Raises ConfigError for no boolean."""
    return "half" if parse(_Style, raw, "config.json").rope_is_neox_style else "pairs"


def _factor(text: FlatText) -> float:
    factor = text.qk_scale_factor
    if factor is None and text.head_dim != HEAD_DIM:
        raise ConfigError(
            f"qk_scale_factor is missing, and its default {RELEASED_FLAT} belongs to head_dim "
            f"{HEAD_DIM}, not {text.head_dim}; write it ({RELEASED} * sqrt(head_dim))"
        )
    return hf_factor(RELEASED_FLAT if factor is None else factor, text.head_dim, "flat", "")


def _require_format(raw: Mapping[str, Any]) -> None:
    version = raw.get("muse_glimmer_mlx_format", FORMAT)
    if not same(version, FORMAT):
        raise ConfigError(
            f"muse_glimmer_mlx_format={show(version)}; this version of atem reads format {FORMAT}"
        )
