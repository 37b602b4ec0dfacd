"""Stop strings for an engine that has none of its own.

Rules: the same search as the runtime's engines have. A text stays a text and a
piece a piece, so that the parser still knows who wrote a marker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...runtime.stops import StopStrings
from ...wire import Piece
from .idle import IDLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...engine import Step
    from ...tokenizer import Tokenizer


def stopped(
    steps: Iterable[Step], stops: tuple[str, ...], tokenizer: Tokenizer | None
) -> Iterator[Step]:
    """``steps`` up to the first of ``stops``, which is left out."""
    search = StopStrings(stops)
    for step in steps:
        if step is IDLE:
            yield step
            continue
        shown = search.take(_pieces(step, tokenizer))
        if step.finish and not search.found:
            shown += search.flush()
        finish = "stop" if search.found else step.finish
        yield replace(step, piece=_like(step.piece, shown), finish=finish, stop=search.found)
        if search.found:
            return


def _pieces(step: Step, tokenizer: Tokenizer | None) -> list[Piece]:
    if step.pieces is not None:
        return [p if isinstance(p, Piece) else Piece(p) for p in step.pieces]
    assert tokenizer is not None, "an engine that gives bare ids has a tokenizer"
    return [
        Piece(tokenizer.token_bytes(i).decode("utf-8", "replace"), tokenizer.is_special(i))
        for i in step.ids
    ]


def _like(piece: object, shown: list[Piece]) -> str | tuple[Piece, ...]:
    if isinstance(piece, str):
        return "".join(part.text for part in shown)
    return tuple(shown)
