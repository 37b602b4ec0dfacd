"""What an engine hands on with each step of a generation.

Rules: plain data; no engine is imported here. Engines deal in token ids and
text pieces and know nothing of parsers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from .wire import Piece

Finish: TypeAlias = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a generation.

    ``ids`` are the new token ids. ``piece`` is their text: a ``Piece`` (or one
    for each id) tells special tokens from text that spells them, a plain
    ``str`` leaves that to the reader; None leaves the decoding to whoever has
    the tokenizer. ``finish`` is set on the last step. ``logprobs`` has one
    number for each id, ``cached_tokens`` counts prompt tokens that were reused.
    """

    ids: tuple[int, ...] = ()
    piece: str | Piece | tuple[Piece, ...] | None = None
    finish: Finish | None = None
    logprobs: tuple[float, ...] | None = None
    cached_tokens: int | None = None
