"""An answer's deltas as steps: one with a finish, at the end, and none without one.

Rules: an answer whose body ends before its reason did is a failure, never a
short answer. The last step waits for the body's end, because the counts of
tokens come there; a stop string that is found here ends it without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from ... import wire
from ...engine import Step
from ...errors import TokenError
from ...wire import Piece
from ..detokenizer import Detokenizer
from ..stops import StopStrings
from .answers import Delta, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...engine import Counted, Finish
    from ...tokenizer import Tokenizer


class Writer(Protocol):
    """Deltas to text, up to a stop string."""

    @property
    def found(self) -> str | None:
        """The stop string that was met."""

    def take(self, delta: Delta) -> tuple[Piece, ...] | str:
        """The text of what ``delta`` adds."""

    def end(self, finish: Finish) -> tuple[Piece, ...] | str:
        """What was held back."""


class Tokens:
    """Text from ids, each with its provenance, by the model's own tokenizer.

    Without the four framing tokens in it, only the text itself can be framing
    (wire_format 1.1), and so it is a plain string.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopStrings(stops)
        self._tokenizer = tokenizer
        self._plain = None in map(tokenizer.special_id, wire.REQUIRED_SPECIALS)
        self._eom = tokenizer.special_id(wire.EOM)

    @property
    def found(self) -> str | None:
        """The stop string that was met."""
        return self._stops.found

    def take(self, delta: Delta) -> tuple[Piece, ...] | str:
        """The pieces of the delta's ids.

        Raises Malformed for text that has none, and for an id that the tokenizer hasn't.
        """
        if delta.text and not delta.ids:
            raise Malformed("there is text without token ids, which were asked for")
        ends = (delta.stopped_by, *delta.ids[-1:])
        if delta.finish == "stop" and self._eom is not None and self._eom in ends:
            raise Malformed(_STOPS_EARLY)
        for number in delta.ids:
            self._require_known(number)
        pieces = [piece for number in delta.ids for piece in self._detokenizer.take(number)]
        return self._shown(self._stops.take(pieces))

    def end(self, finish: Finish) -> tuple[Piece, ...] | str:
        """The rest of a character, and what may have begun a stop string."""
        pieces = self._stops.take(self._detokenizer.flush())
        return self._shown(pieces + ([] if self.found else self._stops.flush()))

    def _require_known(self, number: int) -> None:
        try:
            self._tokenizer.token_bytes(number)
        except TokenError:
            raise Malformed(
                f"the id {number} is not in tokenizer=; pass that of the model that it serves"
            ) from None

    def _shown(self, pieces: list[Piece]) -> tuple[Piece, ...] | str:
        return _joined(pieces) if self._plain else tuple(pieces)


class Text:
    """Raw text, in which only the text itself can say what is framing."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = StopStrings(stops)
        self._tail = ""

    @property
    def found(self) -> str | None:
        """The stop string that was met."""
        return self._stops.found

    def take(self, delta: Delta) -> str:
        """The delta's text, as far as no stop string may begin in it.

        Raises Malformed for what was parsed: the probe saw a server that parses nothing.
        """
        if delta.reasoning or delta.calls:
            raise Malformed("reasoning or calls came apart from the text, which were one before")
        self._tail = (self._tail + delta.text)[-len(wire.EOM) :]
        if delta.finish == "stop" and self._tail == wire.EOM:
            raise Malformed(_STOPS_EARLY)
        return _joined(self._stops.take([Piece(delta.text)] if delta.text else []))

    def end(self, finish: Finish) -> str:
        """What may have begun a stop string."""
        return "" if self.found else _joined(self._stops.flush())


def _joined(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


_STOPS_EARLY: Final = (
    f"the server stopped at {wire.EOM}, which ends a message and not the turn; take it out of the "
    "stop tokens of the server's generation config"
)


def steps(
    deltas: Iterable[Delta], writer: Writer, logprobs: int | None, limit: int | None = None
) -> Iterator[Step]:
    """The steps of an answer.

    Raises Malformed for one that ends without a reason or for two, goes on
    after it or beyond ``limit`` ids, and where log-probabilities were asked for and don't
    come with the ids.
    """
    last: Delta | None = None
    cached: int | None = None
    counted: Counted | None = None
    count = 0
    for delta in deltas:
        count += len(delta.ids)
        if limit is not None and count > limit:
            raise Malformed(f"{limit} tokens were asked for, and more came")
        cached = delta.cached if delta.cached is not None else cached
        counted = delta.counted or counted
        if last is not None and (delta.says or delta.finish not in (None, last.finish)):
            raise Malformed("the answer goes on after its end")
        if delta.stopped_by == wire.EOM:
            raise Malformed(_STOPS_EARLY)
        if delta.finish is not None:
            last = last or delta  # one that comes twice has its text in the first
        elif delta.says:
            piece = writer.take(delta)
            finish: Finish | None = "stop" if writer.found else None
            yield replace(_step(delta, piece, finish, cached, logprobs), stop=writer.found)
            cached = None
            if writer.found:
                return
    if last is None:
        raise Malformed("the answer broke off: its body ended, and no reason for the end came")
    yield replace(_last(last, writer, cached, logprobs), counted=counted)


def _last(last: Delta, writer: Writer, cached: int | None, logprobs: int | None) -> Step:
    assert last.finish is not None
    shown, held = writer.take(last), writer.end(last.finish)
    piece = shown + held  # type: ignore[operator]
    finish: Finish = "stop" if writer.found else last.finish
    return replace(_step(last, piece, finish, cached, logprobs), stop=writer.found)


def _step(
    delta: Delta,
    piece: tuple[Piece, ...] | str,
    finish: Finish | None,
    cached: int | None,
    logprobs: int | None,
) -> Step:
    numbers, top = delta.logprobs, delta.top
    if logprobs is None:
        numbers = top = None
    elif len(numbers or ()) != len(delta.ids) or (logprobs and len(top or ()) != len(delta.ids)):
        raise Malformed("log-probabilities were asked for, and there is not one for each token")
    return Step(
        ids=delta.ids,
        piece=piece,
        finish=finish,
        logprobs=numbers if logprobs is None else numbers or (),
        cached_tokens=cached,
        top_logprobs=_likeliest(top, logprobs),
    )


def _likeliest(
    tops: tuple[tuple[tuple[int, float], ...], ...] | None, wanted: int | None
) -> tuple[tuple[tuple[int, float], ...], ...] | None:
    """The ``wanted`` best at each place; servers add the token that was taken."""
    if not wanted or tops is None:
        return None
    return tuple(tuple(sorted(top, key=lambda pair: -pair[1])[:wanted]) for top in tops)
