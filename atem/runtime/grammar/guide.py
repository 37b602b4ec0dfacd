"""Where one turn is in its grammar, and which tokens may come next.

Rules: a matcher runs from the ``<|start|>`` of a message to its end, or to where
a body begins that is the model's own: inside that nothing is masked, except
that reasoning alone ends no turn. Framing is known by the ids of special tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ... import wire
from ...errors import EngineError, OptionError, TokenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .compiled import Compiled

_BLANK: Final = f"[{wire.WHITESPACE}]"
_BARE: Final = re.compile(
    f"(?:\\A|{_BLANK}){wire.TO}([^{wire.BREAKS_HEADER}]+){_BLANK}*\\Z".encode()
)


class Guide:
    """Follows one turn through a grammar; every id of the output goes to :meth:`record`.

    ``opened`` are the ids of the message that the prompt leaves open, from its
    ``<|start|>`` on; without any the turn begins with a ``<|start|>``. While
    ``thinking`` is true a message to ``self`` may be opened. Raises OptionError
    for an open message that the grammar doesn't allow.
    """

    def __init__(self, compiled: Compiled, opened: Sequence[int], *, thinking: bool = True) -> None:
        self.thinking = thinking
        self._compiled = compiled
        vocabulary = compiled.vocabulary
        self._tokenizer = tokenizer = vocabulary.tokenizer
        self._start, self._message, self._eom = (
            tokenizer.special_id(text) for text in (wire.START, wire.MESSAGE, wire.EOM)
        )
        self._unstopped = np.ones(vocabulary.size, dtype=np.bool_)
        self._unstopped[sorted(vocabulary.stop_ids)] = False
        self._stops = len(vocabulary.stop_ids)
        self._matcher: Any = None
        self._mask: NDArray[np.bool_] | None = None
        self._reasoning = False
        self._text = b""
        # A prompt may have opened reasoning for which nothing is left.
        if not (self._replayed(opened, thinking=thinking) or self._replayed(opened, thinking=True)):
            raise OptionError(
                "grammar= doesn't allow the message that the prompt has opened; open another "
                "channel, or none"
            )

    # -- what may come ---------------------------------------------------------------

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """For each id [V] whether it may come next; None if all may. Raises EngineError."""
        if self._matcher is None:
            return self._unstopped if self._reasoning and not self._said else None
        mask = self._masked
        if self._matcher.is_error() or not mask.any():
            self._compiled.renew()
            raise EngineError(
                "the grammar is too costly, or leads to a place where nothing may follow; simplify "
                "it, or leave it out"
            )
        return mask

    @property
    def only(self) -> int | None:
        """The one id that may come next, if there is just one."""
        if self._matcher is None or np.count_nonzero(self._masked) != 1:
            return None
        return int(self._masked.argmax())

    def need(self, need: int | None) -> int | None:
        """How many of the best candidates a sampler sees that wants ``need`` of them."""
        if self._matcher is not None or need is None:
            return None
        return need if self.allowed is None else need + self._stops

    @property
    def _masked(self) -> NDArray[np.bool_]:
        if self._mask is None:
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            unpacked = np.unpackbits(bits, bitorder="little")[: len(self._unstopped)]
            self._mask = unpacked.view(np.bool_)
        return self._mask

    # -- what came -------------------------------------------------------------------

    def record(self, token_id: int) -> None:
        """``token_id`` was written. Raises EngineError if the grammar doesn't allow it."""
        if not self._taken(token_id):
            raise EngineError(f"the token {token_id} was written against the grammar")

    def _replayed(self, opened: Sequence[int], *, thinking: bool) -> bool:
        """Whether the grammar allows what is open, to ``self`` only with ``thinking``."""
        self._said = self._reasoning = False
        self._open(thinking=thinking)
        return all(map(self._taken, opened))

    def _taken(self, token_id: int) -> bool:
        if self._matcher is not None:
            return self._follow(token_id)
        self._pass(token_id)
        return True

    def _follow(self, token_id: int) -> bool:
        """Take ``token_id`` where the grammar decides; false if it doesn't allow it."""
        self._mask = None
        if not self._matcher.consume_token(token_id):
            return False
        if token_id == self._eom:
            self._said = True
            self._next()
        elif not self._in_header:
            return True
        elif token_id == self._message:
            self._enter(self._text.decode("utf-8", "replace").rpartition(wire.TO)[2])
        else:
            self._text += self._bytes(token_id)
        return True

    def _enter(self, recipient: str) -> None:
        self._in_header, self._text = False, b""
        if recipient in self._compiled.free:
            self._matcher, self._reasoning = None, recipient == wire.SELF

    def _pass(self, token_id: int) -> None:
        """Take ``token_id`` in a body that is the model's own."""
        if token_id in (self._eom, self._start):
            self._said |= not self._reasoning
            self._next()
            if token_id == self._start:
                self._follow(token_id)
        elif not self._reasoning:
            return
        elif token_id == self._message:
            self._leave()
        else:
            self._text = (self._text + self._bytes(token_id))[-wire.MAX_HEADER :]

    def _leave(self) -> None:
        """Go on behind a bare header to a tool, which reasoning may end with (wire_format 5.3)."""
        header = _BARE.search(self._text)
        name = header.group(1).decode("utf-8", "replace") if header else ""
        if name in self._compiled.names:
            self._next()
            for token_id in self._compiled.header(name):
                self._follow(token_id)

    def _next(self) -> None:
        """Another message; reasoning doesn't follow on reasoning."""
        self._open(thinking=self.thinking and not self._reasoning)

    def _open(self, *, thinking: bool) -> None:
        """Stand before the ``<|start|>`` of a message."""
        self._matcher = self._compiled.opening(thinking=thinking)
        self._mask, self._in_header, self._reasoning, self._text = None, True, False, b""

    def _bytes(self, token_id: int) -> bytes:
        try:
            return self._tokenizer.token_bytes(token_id)
        except TokenError:  # an id of the padding behind the vocabulary
            return b"\xff"
