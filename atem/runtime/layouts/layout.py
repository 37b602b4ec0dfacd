"""A layout: a table of names, a choice of codec for each module, and fix-ups (model.md 4).

Rules: a layout is told by names and by the configuration, never by values. A
plug-in has the members of :class:`Layout`; the built-in ones are tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..schemas import read_config
from .assembly import assemble
from .names import DROPPED
from .quantised import quantisation

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..checkpoint import Checkpoint, RopeStyle
    from .assembly import Form
    from .codecs import Codec
    from .source import Source


class Layout(Protocol):
    """A family of checkpoints. Built-in ones and plug-ins have the same two members."""

    def matches(self, source: Source, /) -> bool:
        """Whether this is the family of ``source``, by names alone."""

    def open(self, source: Source, rope_style: RopeStyle | None, /) -> Checkpoint:
        """The checkpoint; checks all of model.md 4.8, raises CheckpointError of some kind."""


@dataclass(frozen=True, slots=True)
class Named:
    """A layout that its names tell: ``recognise``, find the order of rows, assemble."""

    form: Form
    recognise: Callable[[Source], bool]
    style: Callable[[Source, Codec | None, RopeStyle | None], RopeStyle]
    """From the source, the codec of the table, and the option."""
    check: Callable[[Source], None] = lambda source: None
    """What else must hold; raises CheckpointError."""

    def matches(self, source: Source, /) -> bool:
        """Whether this is the family of ``source``."""
        return self.recognise(source)

    def open(self, source: Source, rope_style: RopeStyle | None, /) -> Checkpoint:
        """The checkpoint; see :meth:`Layout.open`."""
        self.check(source)
        config = read_config(source.config)
        method = quantisation(source)
        table = method.codec(source, self.form.names.module("embed"))
        style = self.style(source, table, rope_style)
        dropped = {**DROPPED, **method.dropped}
        return assemble(source, self.form, config, style, choose=method.codec, dropped=dropped)
