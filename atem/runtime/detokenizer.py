"""Token ids to text, one at a time, never half a character.

Rules: one piece for each id, so that a reader can count tokens by pieces. At
most three bytes are held; what can never be UTF-8 becomes U+FFFD, one for each
maximal beginning of a character, as ``bytes.decode`` does it (wire_format 8).
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from ..errors import TokenError
from ..wire import Piece

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_new_decoder = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """The text of one generation, as it comes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = _new_decoder("replace")

    def take(self, token_id: int, *, last: bool = False) -> tuple[Piece, ...]:
        """The piece of ``token_id``, its text empty while a character is unfinished.

        Before a special token stands a second piece if it breaks off a
        character. With ``last`` nothing stays held. An id beyond the tokenizer
        (tables are padded) has no text.
        """
        if self._tokenizer.is_special(token_id):
            text = self._bytes(token_id).decode("utf-8", "replace")
            return (*self.flush(), Piece(text, special=True))
        return (Piece(self._decoder.decode(self._bytes(token_id), final=last)),)

    def flush(self) -> tuple[Piece, ...]:
        """U+FFFD for a character that stays unfinished, if there is one."""
        text = self._decoder.decode(b"", final=True)
        return (Piece(text),) if text else ()

    def _bytes(self, token_id: int) -> bytes:
        try:
            return self._tokenizer.token_bytes(token_id)
        except TokenError:
            return b""
