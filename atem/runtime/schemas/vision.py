"""The vision tower's part of a configuration, as far as a text model has to look at it.

Rules: declared or not is all that is kept; what is declared has to be possible
(model.md 3.4, rule 8). Keys are those of model.md 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ...errors import ConfigError
from ..config import LayerCount, Positive
from .parse import as_object, parse

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Tower(BaseModel):
    """``vision_config``; defaults as in the released model."""

    model_config = ConfigDict(strict=True, extra="ignore")

    hidden_size: Positive = 1536
    intermediate_size: Positive = 8960
    num_hidden_layers: LayerCount = 50
    num_attention_heads: Positive = 16
    patch_size: Positive = 14
    patch_temporal: Positive = 2
    merge_size: Positive = 2
    pos_emb_height: Positive = 32
    pos_emb_width: Positive = 32


class _Join(BaseModel):
    """What stands beside ``vision_config``, on how its rows enter the text model."""

    model_config = ConfigDict(strict=True, extra="ignore")

    out_hidden_size: Positive = 6144
    projector_hidden_size: Positive = 4096


def declares_vision(raw: Mapping[str, Any]) -> bool:
    """Whether there is a ``vision_config``. Raises ConfigError for an impossible one."""
    declared = raw.get("vision_config")
    if declared is None:
        return False
    tower = parse(_Tower, as_object(declared, "vision_config"), "vision_config")
    if tower.pos_emb_height != tower.pos_emb_width:
        raise ConfigError(
            f"vision_config: pos_emb_height={tower.pos_emb_height} and pos_emb_width="
            f"{tower.pos_emb_width} differ; the table of positions is square"
        )
    out = parse(_Join, raw, "config.json").out_hidden_size
    joined = tower.hidden_size * tower.merge_size**2
    if out != joined:
        raise ConfigError(
            f"out_hidden_size={out}, but vision_config.hidden_size={tower.hidden_size} * "
            f"merge_size={tower.merge_size}^2 = {joined}; a merged patch has that width"
        )
    return True
