"""What to say about tensors of no known layout (model.md 4.6, 4.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import LayoutError
from ..quoting import some
from ..schemas import read_config
from .names import nearest
from .packed import MARKER

if TYPE_CHECKING:
    from .source import Source


def unknown_layout(source: Source) -> LayoutError:
    """The error for a source that no layout matches: counts, names, the nearest layout."""
    if _is_fused(source):
        return LayoutError(
            f"{source.path}: model.layers.0.self_attn.q_proj holds q and gate, as in the packed"
            f" artefact, but config.json lacks its marker {MARKER}: take the artefact's"
            " own config.json"
        )
    best = nearest(source.modules)
    near = f"the nearest layout is {best!r}" if best else "no name is known"
    return LayoutError(
        f"{source.path}: {len(source.stored)} tensors ({some(sorted(source.stored))}) are of no"
        f" layout that is known; {near}: is this a Muse Glimmer checkpoint, and complete?"
    )


def _is_fused(source: Source) -> bool:
    q = source.modules.get("model.layers.0.self_attn.q_proj", {}).get("weight")
    if q is None:
        return False
    config = read_config(source.config)
    return q.shape[:1] == (2 * config.num_attention_heads * config.head_dim,)
