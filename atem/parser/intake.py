"""Tokens of every kind to text and special markers.

Rules: here ends the variety of what a caller may feed; the
machine sees decoded text and framing markers. Bytes may be cut anywhere, also
inside a character: up to three are held, and what can never be UTF-8 becomes
U+FFFD (wire_format 8).
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from .. import wire
from ..errors import TokenError
from ..tokenizer import Tokenizer, wrap
from .options import Reason, check_choice
from .text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from .machine import Machine

_FRAMING: Final = frozenset(wire.FRAMING)
_MARKERS: Final = re.compile("(" + "|".join(map(re.escape, wire.FRAMING)) + ")")
_new_decoder = codecs.getincrementaldecoder("utf-8")


@runtime_checkable
class StepLike(Protocol):
    """What an engine yields: ids with or without their text, and an end."""

    ids: Any
    piece: Any
    finish: Any


class Intake:
    """Feeds one machine.

    ``finish`` is the reason that an engine's last step gave, if any;
    ``pending`` says that bytes of an unfinished character are held.
    """

    def __init__(self, machine: Machine, tokenizer: object | None) -> None:
        self._machine = machine
        self._decoder = _new_decoder("replace")
        self.pending = False
        self._tokenizer: Tokenizer | None = None if tokenizer is None else wrap(tokenizer)
        self._knows_specials = self._tokenizer is not None and all(
            self._tokenizer.special_id(marker) is not None for marker in wire.REQUIRED_SPECIALS
        )
        self.finish: str | None = None
        self._kinds: tuple[tuple[type, Callable[[Any], None]], ...] = (
            (Text, self._staged),
            (str, self._text),
            (wire.Piece, self._piece),
            (bytes, self._bytes),
            (bool, self._refuse),
            (int, self._id),
            (StepLike, self._step),
        )

    def feed(self, token: object) -> None:
        """Take one token. Raises TokenError for a kind that can't be taken."""
        for kind, take in self._kinds:
            if isinstance(token, kind):
                take(token)
                return
        self._refuse(token)

    def close(self, reason: Reason | Callable[[], Reason]) -> bool:
        """Nothing follows, because of ``reason``; whether more would have come.

        An unfinished character is replaced. Raises OptionError for a reason
        that is none, also if an engine's step gave it.
        """
        why = reason() if callable(reason) else reason
        finish = self.finish or "stop"
        for given in (why, finish):
            check_choice("reason", given)
        self._flush()
        return (why, finish) != ("stop", "stop")

    def _text(self, text: str) -> None:
        self._flush()
        self._machine.text(text)

    def _staged(self, text: Text) -> None:
        self._flush()
        if not text.framing:
            self._machine.text(text.text, plain=True)
            return
        for part in _MARKERS.split(text):
            self._special(part)

    def _bytes(self, data: bytes) -> None:
        self._decode(data, plain=False)

    def _piece(self, piece: wire.Piece) -> None:
        self._tick()
        self._flush()
        if piece.special:
            self._special(piece.text)
        else:
            self._machine.text(piece.text, plain=True)

    def _id(self, token_id: int) -> None:
        if self._tokenizer is None:
            raise TokenError(
                f"token {token_id} is an id; pass tokenizer= to the parser, or feed text"
            )
        data = self._tokenizer.token_bytes(token_id)
        self._tick()
        if not self._knows_specials:
            self._decode(data, plain=False)
        elif self._tokenizer.is_special(token_id):
            self._flush()
            self._special(data.decode("utf-8", "replace"))
        else:
            self._decode(data, plain=True)

    def _special(self, text: str) -> None:
        if text in _FRAMING:
            self._machine.special(text)
        else:
            self._machine.text(text, plain=True)

    def _step(self, step: StepLike) -> None:
        if step.finish is not None:
            self.finish = step.finish
        if step.piece is None:
            for token_id in step.ids:
                self._id(token_id)
        elif isinstance(step.piece, tuple) and not isinstance(step.piece, wire.Piece):
            for piece in step.piece:
                self.feed(piece)
        else:
            self.feed(step.piece)

    def _refuse(self, token: object) -> None:
        raise TokenError(
            f"a token of type {type(token).__name__} can't be parsed; "
            "feed str, bytes, Piece, an int id with tokenizer=, or an engine's Step"
        )

    def _decode(self, data: bytes, *, plain: bool) -> None:
        text = self._decoder.decode(data)
        self.pending = bool(self._decoder.getstate()[0])
        self._machine.text(text, plain=plain)
        if self.pending:
            self._machine.pause()

    def _flush(self) -> None:
        if self.pending:
            self.pending = False
            self._machine.text(self._decoder.decode(b"", final=True), plain=self._knows_specials)
            self._decoder.reset()

    def _tick(self) -> None:
        machine = self._machine
        machine.clock.tick(machine.position, machine.settled)
