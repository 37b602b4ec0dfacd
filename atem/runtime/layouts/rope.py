"""Which order the rows of q and k have in a file (model.md 4.1, 4.7).

Rules: what a file or its layout declares is the answer, and an option that
contradicts it is refused. Where an older export looks exactly like today's,
the embedding table gives it away, and then only the caller can decide::

    layout       the file says   given None      "half"         "pairs"
    raw, packed  half            half            half           OptionError
                 pairs           pairs           OptionError    pairs
                 nothing         pairs           half, a note   pairs
    hf           doubt           RopeUndecided   half, a note   pairs, a note
                 no doubt        half            half, a note   pairs, a note
    mlx, bare    doubt           RopeUndecided   half, a note   pairs, a note
                 no doubt        half            half           OptionError
    gguf         nothing         pairs           half, a note   pairs

Doubt: the configuration says pairs, or the rows of the table have RMS 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...errors import OptionError, RopeUndecided
from ..schemas import rope_style_of

if TYPE_CHECKING:
    from ..checkpoint import RopeStyle
    from .codecs import Codec
    from .source import Source

KEY: Final = "rope_is_neox_style"

SAMPLE: Final = 64
"""Rows of the table that are looked at, spread over the vocabulary."""

CHANGED: Final = "2026-08-06"
"""Day of today's converter: it stores q and k in the half order and the table as trained."""


def flat_style(source: Source, _: Codec | None, given: RopeStyle | None) -> RopeStyle:
    """The style where the configuration may say it (raw, packed); pairs where it does not.

    Raises OptionError when ``given`` contradicts what the configuration says.
    """
    declared = declared_style(source)
    if declared is not None:
        return _agreed(source, declared, given, f"config.json says so ({KEY})")
    if given == "half":
        source.notes.append(f"rope_style='half' was set; without {KEY} it would be 'pairs'")
    return given or "pairs"


def half_style(
    source: Source, table: Codec | None, given: RopeStyle | None, *, firm: bool
) -> RopeStyle:
    """The style of names of the half order; ``given`` counts in doubt, or if they aren't ``firm``.

    Raises OptionError when ``given`` contradicts firm names, RopeUndecided in doubt.
    """
    if firm or given is None:
        why = doubt(source, table)
        if why is None:
            return _agreed(source, "half", given, "this layout has no other order")
        if given is None:
            raise RopeUndecided(
                f"{source.path}: {why}. Set rope_style='pairs' for an export made before {CHANGED},"
                " rope_style='half' otherwise"
            )
    source.notes.append(f"rope_style={given!r} was set, and decides")
    return given


def doubt(source: Source, table: Codec | None) -> str | None:
    """Why names of the half order may be wrong about it, None when nothing speaks against it."""
    if declared_style(source) == "pairs":
        return f"the names are of a layout in the half order, and config.json has {KEY} false"
    if table is not None and is_normalised(table):
        return (
            f"the rows of {table.parts[0]} have RMS 1, as in exports made before {CHANGED}, whose"
            " q and k rows are in another order (pairs)"
        )
    return None


def declared_style(source: Source) -> RopeStyle | None:
    """What the configuration says in so many words, None when it has no such key."""
    return rope_style_of(source.config) if KEY in source.config else None


def _agreed(source: Source, known: RopeStyle, given: RopeStyle | None, why: str) -> RopeStyle:
    """``known``; raises OptionError when ``given`` is the other one."""
    if given not in {None, known}:
        raise OptionError(f"{source.path}: rope_style={given!r}, but it is {known!r}: {why}")
    return known


def is_normalised(table: Codec) -> bool:
    """Whether most sampled rows have an RMS of 1 within a percent; raw tables have small rows."""
    if len(table.shape) != 2:
        return False
    numbers = np.unique(np.linspace(0, table.shape[0] - 1, SAMPLE).astype(np.intp))
    # One row at a time: how wide a row is, a stranger's file says.
    rows = (table.read([number]).astype(np.float64) for number in numbers.tolist())
    rms = np.sqrt([np.vdot(row, row) / row.size for row in rows])
    return bool(np.mean((rms > 0.99) & (rms < 1.01)) > 0.5)
