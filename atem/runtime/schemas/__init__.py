"""Every configuration a checkpoint can come with, read into the one ``ModelConfig``.

Rules: which schema a file follows is told by the names of its keys, never by
the size of a number (model.md 3.2). What is missing is derived, what is there
is checked and never overwritten. Whatever the JSON holds, the answer is a
ModelConfig or a ConfigError. A key that would change the maths in a way that
no engine computes is refused; other unknown keys are left alone, since
checkpoints carry many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import flat, hf
from .family import names_of, require_family
from .gguf import config_from_gguf
from .parse import as_object
from .vision import declares_vision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..checkpoint import RopeStyle
    from ..config import ModelConfig

__all__ = ["config_from_gguf", "read_config", "rope_style_of"]


def read_config(raw: Mapping[str, Any]) -> ModelConfig:
    """The configuration in a ``config.json``: nested, flat, or HF names flattened (model.md 3).

    Whether the head is tied follows what the file declares; a layout that
    finds it otherwise says so. Raises ConfigError, with the keys it is about.
    """
    raw = as_object(raw, "config.json")
    require_family(raw)
    vision = declares_vision(raw)
    if raw.get("text_config") is not None:
        return hf.read_nested(raw, vision=vision)
    if names_of(raw) == "flat":
        return flat.read(raw, vision=vision)
    return hf.read(raw, vision=vision)


def rope_style_of(raw: Mapping[str, Any]) -> RopeStyle | None:
    """Order of q and k rows that a flat file declares, None where the schema has no such key.

    ``rope_is_neox_style`` true is half; false, or absent from a flat file, is
    pairs (model.md 3.2). Raises ConfigError as :func:`read_config` does.
    """
    raw = as_object(raw, "config.json")
    if raw.get("text_config") is not None or names_of(raw) == "hf":
        return None
    return flat.rope_style(raw)
