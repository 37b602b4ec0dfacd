"""Layouts: any checkpoint on disk in, canonical tensors out (model.md 4).

Rules: layouts are told apart by the order of one table (model.md 4.6), and
entry points of the group "atem.layouts" come after it. A new one is a new file
and its name in the table. What is not recognised is an error that names the
nearest family, never a guess.

The way of one tensor, q of layer 3 of a packed artefact in 4 bits::

    Source            model.layers.3.self_attn.q_proj.{weight, scales, biases}: views of files
    Layout "packed"   its marker is in config.json; it has a Form and asks for the order of rows
      Form            q and gate lie in one tensor, norms are absolute; and its Names
      Names           "layers.3.q" is of the module model.layers.3.self_attn.q_proj
    Method "mlx"      by config.json, that module is affine, 4 bits, groups of 64
      Codec           Blocks "MLX4" [2*H*D, d]: any rows of it in float32
    Reading           of these the rows of q, from pairs into the half order
    StoredCheckpoint  read("layers.3.q") [H*D, d]: decoded when asked, and finite
"""

from __future__ import annotations

from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import CheckpointError, LayoutError, MissingExtra, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..checkpoint import Checkpoint, RopeStyle
    from .layout import Layout
    from .source import Source

BUILT_IN: Final = ("gguf", "packed", "families")
"""Modules of this package; the ``LAYOUTS`` of each are asked in this order."""

GROUP: Final = "atem.layouts"
"""Entry points of other distributions; each loads to one :class:`~.layout.Layout`."""

STYLES: Final = (None, "half", "pairs")


def open_checkpoint(path: str | Path, *, rope_style: RopeStyle | None = None) -> Checkpoint:
    """Open the checkpoint at ``path``: a folder of safetensors files, or a GGUF file.

    ``rope_style`` is the order of q and k rows in the file, for exports that
    don't tell (model.md 4.7). Only headers are read; everything in model.md 4.8
    is checked. Raises CheckpointError of the kind at fault, OptionError when
    ``rope_style`` contradicts the file, MissingExtra without NumPy.
    """
    if rope_style not in STYLES:
        raise OptionError(f"rope_style={rope_style!r}: it is 'half', 'pairs' or None")
    try:
        return _open(_source(Path(path)), rope_style)
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error


def _source(path: Path) -> Source:
    try:
        from .folder import open_folder
        from .gguf_source import find_gguf, open_gguf
    except ImportError as error:
        if error.name in {"numpy", "ml_dtypes"}:
            raise MissingExtra("engine", "reading a checkpoint") from error
        raise
    found = find_gguf(path)
    if found is not None:
        return open_gguf(*found, path)
    if path.is_file():
        raise LayoutError(f"{path} is a file and no GGUF: name its folder")
    return open_folder(path)


def _open(source: Source, rope_style: RopeStyle | None) -> Checkpoint:
    try:
        return _recognise(source).open(source, rope_style)
    except BaseException:
        source.close()
        raise


def _recognise(source: Source) -> Layout:
    for layout in _layouts():
        if layout.matches(source):
            return layout
    from .unknown import unknown_layout

    raise unknown_layout(source)


def _layouts() -> Iterator[Layout]:
    """The table's layouts, then those of other distributions, each loaded when it is asked."""
    for name in BUILT_IN:
        yield from import_module(f"{__name__}.{name}").LAYOUTS
    for point in metadata.entry_points(group=GROUP):
        yield _plug_in(point)


def _plug_in(point: metadata.EntryPoint) -> Layout:
    try:
        found: Layout = point.load()
    except Exception as error:
        owner = point.dist.name if point.dist else "an unknown distribution"
        raise LayoutError(
            f"the layout {point.name!r} of {owner} can't be loaded"
            f" ({type(error).__name__}: {error}): update or uninstall {owner}"
        ) from error
    return found


__all__ = ["BUILT_IN", "GROUP", "CheckpointError", "open_checkpoint"]
