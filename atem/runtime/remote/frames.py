"""What a server parsed, written back as the messages of a turn.

Rules: framing is special because it is written here; a server's words are text,
whatever they spell (wire_format 1.1). Reasoning goes to self, content to the
user, each call to its tool, after everything else. What stands in the channels
is the server's, character for character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ... import wire
from ...wire import Piece
from .calls import Calls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...engine import Finish
    from .answers import Delta

_MESSAGE: Final = Piece(wire.MESSAGE, special=True)
_EOM: Final = Piece(wire.EOM, special=True)
_EOT: Final = Piece(wire.EOT, special=True)
_START: Final = Piece(wire.START, special=True)


class Frames:
    """One answer of chat completions as pieces. ``found`` is None: nothing stops it here."""

    found: str | None = None

    def __init__(self, empty_ok: Collection[str] = ()) -> None:
        self._calls = Calls(empty_ok)
        self._open: str | None = None

    def take(self, delta: Delta) -> tuple[Piece, ...]:
        """The pieces of what ``delta`` adds; those of its calls come at the end."""
        pieces: list[Piece] = []
        for recipient, text in ((wire.SELF, delta.reasoning), (wire.USER, delta.text)):
            if text:
                pieces += [*self._to(recipient), Piece(text)]
        for call in delta.calls:
            self._calls.take(call)
        return tuple(pieces)

    def end(self, finish: Finish) -> tuple[Piece, ...]:
        """The calls, and the end of the turn unless it was cut."""
        pieces: list[Piece] = []
        for recipient, body in self._calls.bodies(cut=finish != "stop"):
            pieces += [*self._to(recipient, new=True), Piece(body)]
        return (*pieces, _EOT) if finish == "stop" else tuple(pieces)

    def _to(self, recipient: str, *, new: bool = False) -> Iterator[Piece]:
        """The header to ``recipient``, unless its message is open and no new one is wanted."""
        if self._open == recipient and not new:
            return
        if self._open is not None:
            yield from (_EOM, _START, Piece(wire.ASSISTANT))
        self._open = recipient
        yield from (Piece(f" {wire.TO}{recipient}"), _MESSAGE)
