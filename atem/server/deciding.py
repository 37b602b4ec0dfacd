"""Which steps of an engine may take long to read.

Rules: the end of a call is where it is checked, against schemas and grammars
that strangers wrote; some seconds at the very worst, which nobody else has to
wait for. It ends at a marker's end or at a special token. Everything else is
read at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..engine import Step
    from ..tokenizer import Tokenizer
    from ..wire import Piece

END: Final = ">"
"""Of every marker."""


def may_decide(step: Step, tokenizer: Tokenizer | None) -> bool:
    """Whether a call may end in ``step``."""
    if step.pieces is not None:
        return any(
            END in piece if isinstance(piece, str) else _ends(piece) for piece in step.pieces
        )
    return tokenizer is None or any(
        tokenizer.is_special(number) or END.encode() in tokenizer.token_bytes(number)
        for number in step.ids
    )


def _ends(piece: Piece) -> bool:
    return piece.special or END in piece.text
