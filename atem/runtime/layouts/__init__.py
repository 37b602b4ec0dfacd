"""Layouts: any checkpoint on disk in, canonical tensors out (model.md 4).

Rules: one file per family, told apart by the order of one table (model.md 4.6),
and entry points of the group "atem.layouts" after it. What is not recognised
is an error that names the nearest family, never a guess.
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

BUILT_IN: Final = ("gguf", "packed", "mlx_vlm", "hf", "raw", "bare")
"""Modules of this package, each with a ``LAYOUT``, in the order in which they are asked."""

GROUP: Final = "atem.layouts"
"""Entry points of other distributions; each loads to an object like ``LAYOUT``."""

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
        yield import_module(f"{__name__}.{name}").LAYOUT
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
