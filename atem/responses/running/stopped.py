"""Stop strings for an engine that has none of its own.

Rules: the same search as the runtime's engines have. A text stays a text and a
piece a piece, so that the parser still knows who wrote a marker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...runtime.stops import StopStrings
from ...wire import Piece

if TYPE_CHECKING:
    from ...engine import Step
    from ...tokenizer import Tokenizer


class Stopping:
    """Looks for ``stops`` in the steps of one turn."""

    def __init__(self, stops: tuple[str, ...], tokenizer: Tokenizer | None) -> None:
        self._search = StopStrings(stops)
        self._tokenizer = tokenizer

    def take(self, step: Step) -> Step:
        """What may be shown after ``step``. A stop string is left out, and ends the turn."""
        search = self._search
        shown = search.take(_pieces(step, self._tokenizer))
        if step.finish and not search.found:
            shown += search.flush()
        finish = "stop" if search.found else step.finish
        return replace(step, piece=_like(step.piece, shown), finish=finish, stop=search.found)


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
