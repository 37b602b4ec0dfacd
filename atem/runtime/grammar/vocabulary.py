"""The ids of one engine, and the grammars that were compiled for them.

Rules: an engine has one vocabulary, and what was compiled goes with it. How
llguidance sees the ids is found out for the first grammar.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from ... import wire
from ...errors import TokenError, Unsupported
from .compiled import Compiled, library

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...grammar import Grammar
    from ...tokenizer import Tokenizer

KEPT: Final = 8
"""Compiled grammars."""


def supported(tokenizer: Tokenizer) -> bool:
    """Whether grammars can be applied: llguidance is there, and framing is special tokens."""
    return find_spec("llguidance") is not None and not _missing(tokenizer)


class Vocabulary:
    """Ids below ``size`` that ``tokenizer`` reads; those of ``stop_ids`` end a turn."""

    def __init__(self, tokenizer: Tokenizer, stop_ids: Collection[int], size: int) -> None:
        self.tokenizer, self.stop_ids, self.size = tokenizer, frozenset(stop_ids), size
        self._compiled = lru_cache(maxsize=KEPT)(self._compile)

    def compiled(self, grammar: Grammar) -> Compiled:
        """``grammar`` for these ids. Raises as :class:`Compiled`."""
        if not self.stop_ids:
            raise Unsupported(
                "grammar= needs a stop token, with which a turn ends; this model has none"
            )
        if lacking := _missing(self.tokenizer):
            raise Unsupported(
                f"grammar= needs {', '.join(lacking)} as special tokens, which this tokenizer "
                "lacks; leave it out, or use a current export of the checkpoint"
            )
        return self._compiled(grammar)

    def _compile(self, grammar: Grammar) -> Compiled:
        return Compiled(grammar, self)

    @cached_property
    def view(self) -> Any:
        """The ids as llguidance sees them. Takes a second for a large vocabulary."""
        stops = sorted(self.stop_ids)
        ids = _Ids(self.tokenizer, stops[0], self.size)
        return library().LLTokenizer(ids, n_vocab=self.size, eos_token=stops)


class _Ids:
    """What llguidance asks of a tokenizer."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, stop_id: int, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = stop_id
        self.tokens = [self._bytes(number) for number in range(vocab_size)]
        self.special_token_ids = list(filter(tokenizer.is_special, range(vocab_size)))

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenizer.encode(text if isinstance(text, str) else text.decode())

    def _bytes(self, number: int) -> bytes:
        try:
            return self._tokenizer.token_bytes(number)
        except TokenError:  # an id of the padding behind the vocabulary
            return b""


def _missing(tokenizer: Tokenizer) -> list[str]:
    return [text for text in wire.REQUIRED_SPECIALS if tokenizer.special_id(text) is None]
