"""What this server's model wrote last, as it came from the engine.

Rules: off unless it is asked for, in memory alone, and bounded in responses and
in bytes. What one key asked, another doesn't see. Turns are written on the event
loop and read by threads; the parser runs when somebody looks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ... import wire
from ...responses.faults import not_found
from ...runtime.detokenizer import Detokenizer
from ...trace.pieces import MOST_CHARACTERS, MOST_PIECES
from ...trace.records import tool_records, turn_record
from ...trace.tracer import VERSION, Tracer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...engine import Step
    from ...tokenizer import Tokenizer
    from ...trace.pieces import AnyPiece
    from ..reply import Reply

Record: TypeAlias = dict[str, Any]

MOST_BYTES: Final = 64 << 20
"""Of all that is kept, as far as it can be told."""

PIECE_BYTES: Final = 160
"""That a piece takes beside its text."""


class LiveTurn:
    """One turn of the model. ``open`` while it is written; ``full`` if the rest was not kept."""

    def __init__(self, options: dict[str, Any], tokenizer: Tokenizer | None) -> None:
        self.options = options
        self.pieces: list[AnyPiece] = []
        self.characters = 0
        self.finish: str | None = None
        self.open = True
        self.full = False
        self._text = None if tokenizer is None else Detokenizer(tokenizer)
        self._knows = tokenizer is not None and _knows_specials(tokenizer)
        self._lock = threading.Lock()
        self._tracer = Tracer(**options)
        self._traced = 0

    @property
    def size(self) -> int:
        """Bytes, about."""
        return 4 * self.characters + PIECE_BYTES * len(self.pieces)

    def add(self, step: Step) -> None:
        """Keep a step."""
        self.finish = step.finish or self.finish
        for piece in self._spelled(step.ids) if step.pieces is None else step.pieces:
            self._keep(piece)

    def end(self) -> None:
        """Nothing follows."""
        if self.open and self._text is not None:
            for piece in self._text.flush():
                self._keep(piece)
        self.open = False

    def steps(self, after: int) -> Record:
        """The trace behind the first ``after`` steps, and whether more will come."""
        with self._lock:
            over = not self.open  # asked first: what comes later is for the next time
            pieces = self.pieces[:]
            if after != self._traced:
                self._tracer, self._traced = Tracer(**self.options), 0
            steps = [self._tracer.feed(piece) for piece in pieces[self._traced :]]
            steps = steps[max(after - self._traced, 0) :]
            self._traced = len(pieces)
            record: Record = {"version": VERSION, "steps": steps, "open": not over}
            if over:
                reason = "stop" if self.finish == "stop" and not self.full else "length"
                steps.append(self._tracer.close(reason))  # type: ignore[arg-type]
                record["turn"] = turn_record(self._tracer.turn)
                record["options"] = {**self.options, "tools": tool_records(self.options["tools"])}
                # One that was closed takes nothing more, and holds all of the turn.
                self._tracer, self._traced = Tracer(**self.options), 0
            return {**record, "full": self.full}

    def _keep(self, piece: AnyPiece) -> None:
        text = piece if isinstance(piece, str) else piece.text
        characters = self.characters + len(text)
        self.full = self.full or len(self.pieces) == MOST_PIECES or characters > MOST_CHARACTERS
        if not self.full:
            self.characters = characters
            self.pieces.append(piece)

    def _spelled(self, ids: Iterable[int]) -> Iterator[AnyPiece]:
        """Ids that came without their text, as the parser takes them."""
        if self._text is not None:
            for token_id in ids:
                for piece in self._text.take(token_id):
                    yield piece if self._knows else piece.text


class LiveResponse:
    """The turns of one response."""

    def __init__(self, reply: Reply) -> None:
        self.id = reply.id
        self.tenant = reply.tenant
        self.created_at = int(time.time())
        self.turns: list[LiveTurn] = []

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(turn.size for turn in self.turns)

    def record(self) -> Record:
        """What a list shows of it."""
        turns = [
            {"pieces": len(turn.pieces), "characters": turn.characters, "open": turn.open}
            for turn in self.turns
        ]
        return {"id": self.id, "created_at": self.created_at, "turns": turns}


class Live:
    """The last ``most`` responses; none with 0."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: deque[LiveResponse] = deque()
        self._lock = threading.Lock()

    def begin(
        self, response: LiveResponse, options: dict[str, Any], tokenizer: Tokenizer | None
    ) -> LiveTurn | None:
        """A turn of ``response`` begins, to be kept if any is; the oldest responses make room.

        ``options`` are the parser's.
        """
        if self.most == 0:
            return None
        turn = LiveTurn(options, tokenizer)
        with self._lock:
            response.turns.append(turn)
            if len(response.turns) == 1:
                self._kept.append(response)
            while self._crowded():
                self._kept.popleft()
        return turn

    def listed(self, tenant: str) -> list[Record]:
        """The tenant's responses, the newest first."""
        with self._lock:
            kept = [each for each in self._kept if each.tenant == tenant]
        return [each.record() for each in reversed(kept)]

    def turn(self, tenant: str, response_id: str, number: int) -> LiveTurn:
        """One turn of a response. Raises ApiError (404) if it isn't kept for this tenant."""
        with self._lock:
            for each in self._kept:
                if (each.tenant, each.id) == (tenant, response_id) and number < len(each.turns):
                    return each.turns[number]
        raise not_found("This turn is not kept, or not any more.")

    def _crowded(self) -> bool:
        if len(self._kept) > self.most:
            return True
        return len(self._kept) > 1 and sum(each.size for each in self._kept) > MOST_BYTES


def _knows_specials(tokenizer: Tokenizer) -> bool:
    return all(tokenizer.special_id(marker) is not None for marker in wire.REQUIRED_SPECIALS)
