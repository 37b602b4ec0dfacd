"""Putting a checkpoint together: every canonical tensor finds its module, its codec and its rows.

Rules: every stored tensor is used, set aside by name, or an error; every
canonical tensor is there, or an error. Nothing is guessed from values here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...errors import LayoutError
from ..checkpoint import canonical_shapes
from ..quoting import some
from . import rows
from .names import DROPPED, VISION, nearest
from .reading import Reading, StoredCheckpoint, check_shape

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..checkpoint import RopeStyle
    from ..config import ModelConfig
    from .codecs import Choose, Codec
    from .names import Names
    from .source import Source

NORMS: Final = frozenset({"attn_norm", "post_attn_norm", "ffn_norm", "post_ffn_norm"})
"""Parts that are offsets from 1 (the final norm is a plain weight in every layout)."""

FUSED: Final = ("q", "gate")
"""Parts that a fused tensor holds, in the order of their rows in a head."""

ROTATED: Final = ("q", "k")

NO_TOWER: Final = (
    "the configuration declares a vision tower and none of its weights are here: text only"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a layout's tables say; the rest is :func:`assemble`."""

    name: str
    names: Names
    absolute_norms: bool = False
    """The layers' norms are stored with 1 added."""
    fused_gate: bool = False
    """The rows of q and gate lie in one tensor, head by head."""

    def share(self, name: str) -> int:
        """How many canonical tensors lie in the stored tensor of ``name``."""
        return 2 if self.fused_gate and name.rpartition(".")[2] in FUSED else 1


def assemble(
    source: Source,
    form: Form,
    config: ModelConfig,
    rope_style: RopeStyle,
    *,
    choose: Choose,
    dropped: Mapping[str, re.Pattern[str]] = DROPPED,
) -> StoredCheckpoint:
    """The checkpoint of ``source`` as ``form`` reads it.

    ``rope_style`` is the order of q and k rows in the file; ``dropped`` is
    :data:`~atem.runtime.layouts.names.DROPPED` or more. Raises LayoutError for
    missing and unknown tensors, TensorError for shapes.
    """
    _check_count(source, config)
    _check_head(source, config, form.names.module("head"))
    shapes = canonical_shapes(config)
    found = {name: choose(source, form.names.module(name)) for name in shapes}
    codecs = {name: codec for name, codec in found.items() if codec is not None}
    used = {part for codec in codecs.values() for part in codec.parts}
    vision, rest = _split(source.stored.keys() - used, VISION.match)
    rest = _drop(source, rest, dropped)
    missing = [form.names.module(name) for name, codec in found.items() if codec is None]
    if missing or rest:
        raise _mismatch(source, form.name, missing, sorted(rest))
    for name, codec in codecs.items():
        check_shape(name, shapes[name], codec, form.share(name), source.path)
    readings = {
        name: _reading(form, config, rope_style, name, codec) for name, codec in codecs.items()
    }
    if config.vision and not vision:
        source.notes.append(NO_TOWER)
    return StoredCheckpoint(
        source, form.name, config, rope_style, readings, has_vision=bool(vision)
    )


def _check_count(source: Source, config: ModelConfig) -> None:
    """No tables for more layers than the files can have: a configuration may claim any number."""
    if config.num_hidden_layers > len(source.stored):
        raise LayoutError(
            f"{source.path}: num_hidden_layers is {config.num_hidden_layers}, and there are"
            f" {len(source.stored)} tensors: weights are missing, or the configuration is of"
            " another model"
        )


def _check_head(source: Source, config: ModelConfig, module: str) -> None:
    if config.tie_word_embeddings and module in source.modules:
        raise LayoutError(
            f"{source.path}: tie_word_embeddings is true and {module} is stored as well; set it to"
            " false to use the stored head, or remove the head"
        )


def _split(
    names: Iterable[str], is_kind: Callable[[str], object]
) -> tuple[frozenset[str], frozenset[str]]:
    """``names`` of the kind, and the others."""
    everything = frozenset(names)
    kind = frozenset(name for name in everything if is_kind(name))
    return kind, everything - kind


def _drop(
    source: Source, names: frozenset[str], dropped: Mapping[str, re.Pattern[str]]
) -> frozenset[str]:
    """``names`` without those that nobody needs, which become notes."""
    for what, pattern in dropped.items():
        gone, names = _split(names, pattern.search)
        if gone:
            source.notes.append(f"{len(gone)} tensors are not used: {what}")
    return names


def _mismatch(
    source: Source, layout: str, missing: Sequence[str], unknown: Sequence[str]
) -> LayoutError:
    """What is missing and what nobody knows, with the layout that comes nearest."""
    best = nearest(source.modules)
    advice = (
        "the download is incomplete, or the configuration is of another model"
        if best in {layout, None}
        else f"its names are nearest to the layout {best!r}: convert it again from the original"
    )
    return LayoutError(
        f"{source.path}: read as the layout {layout!r}, {_count(missing)} are missing and"
        f" {_count(unknown)} are unknown; {advice}"
    )


def _count(names: Sequence[str]) -> str:
    """``3 tensors (a, b, c)``."""
    return f"{len(names)} tensors" + (f" ({some(names)})" if names else "")


def _reading(
    form: Form, config: ModelConfig, rope_style: RopeStyle, name: str, codec: Codec
) -> Reading:
    part = name.rpartition(".")[2]
    share = form.share(name)
    return Reading(
        codec,
        order=_order(config, part, shared=share > 1, pairs=rope_style == "pairs"),
        minus_one=form.absolute_norms and part in NORMS,
        share=share,
    )


def _order(config: ModelConfig, part: str, *, shared: bool, pairs: bool) -> rows.Order | None:
    """Stored row of every canonical row; None where the order is the same."""
    width = config.head_dim
    heads = config.num_key_value_heads if part == "k" else config.num_attention_heads
    order = rows.fused(heads, width, FUSED.index(part)) if shared else None
    if not pairs or part not in ROTATED:
        return order
    half = rows.half_from_pairs(heads, width)
    return half if order is None else order[half]
