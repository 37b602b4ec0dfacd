"""What every engine's steps are: whole, within their limits, and the same in text as in ids.

Rules: those of :mod:`atem.testing.contract`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wire
from ..engine import GREEDY, Request
from ..errors import ContextOverflow
from ..parser.api import parse_stream
from ..parser.fold import collect
from .driving import decoded, expect, greedy, hot, ids_of, pieces_of, prompt, refuses, run

if TYPE_CHECKING:
    from ..engine import Engine, Step


def check_stop_ids(engine: Engine) -> None:
    """The ends of a turn stop, as far as the tokenizer has them; the end of a message doesn't."""
    ends = {engine.tokenizer.special_id(text) for text in wire.TURN_ENDS} - {None}
    expect(ends <= engine.info.stop_ids, f"stop_ids has {ends}, the ends of a turn")
    eom = engine.tokenizer.special_id(wire.EOM)
    expect(eom not in engine.info.stop_ids, f"stop_ids lacks {eom}, the end of a message")


def check_steps(engine: Engine) -> None:
    """One finish, on the last step; a stop id ends and stands in the last step, and only there."""
    for number in range(4):
        request = hot(engine, number, 64)
        steps = run(engine, request)
        _expect_whole(engine, steps, 64)
        expect(all(step.logprobs is None for step in steps), "no logprobs that nobody asked for")
        cached = [step.cached_tokens for step in steps]
        told = [count for count in cached if count]
        expect(len(told) <= 1, "cached_tokens on one step")
        expect(0 <= sum(told) < len(list(prompt(engine, number))), "cached_tokens in range")


def check_max_tokens(engine: Engine) -> None:
    """At most as many tokens as asked; fewer only after a stop, and a stop at the end is one."""
    for limit in (1, 2, 7):
        _expect_whole(engine, run(engine, greedy(engine, max_tokens=limit)), limit)
    for number in range(8):
        steps = run(engine, hot(engine, number, 96))
        if steps[-1].finish == "stop":
            length = len(ids_of(steps))
            _expect_whole(engine, run(engine, hot(engine, number, length)), length)


def check_context(engine: Engine) -> None:
    """A prompt that leaves no room is refused by the call; with room left, all of it is used."""
    context, base = engine.info.context, prompt(engine)
    full = (base * (context // len(base) + 1))[:context]
    for ids in (full, full + base):
        refused = refuses(engine, Request(ids, GREEDY, max_tokens=1), ContextOverflow)
        expect(refused, f"ContextOverflow for {len(ids)} tokens in a context of {context}")
    if context <= 4096:
        for room in (1, 3):
            _expect_whole(engine, run(engine, Request(full[:-room], GREEDY)), room)


def check_pieces(engine: Engine) -> None:
    """The text of the steps is the text of their ids, specials marked as such."""
    for number in range(4):
        request = hot(engine, number, 48)
        steps = run(engine, request)
        pieces, ids = pieces_of(steps), ids_of(steps)
        if pieces is None:
            continue
        text = "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
        expected = decoded(engine, ids)
        expect(text == expected, f"the text of {ids} is {expected!r}, not {text!r}")
        told = [piece for piece in pieces if isinstance(piece, wire.Piece)]
        marked = [piece.text for piece in told if piece.special]
        specials = [decoded(engine, [n]) for n in ids if engine.tokenizer.is_special(n)]
        expect(not told or marked == specials, f"specials are {specials}, not {marked}")


def check_parsing(engine: Engine) -> None:
    """A parser takes the steps as they are, and reads the turn that their ids are."""
    for number in range(4):
        steps = run(engine, hot(engine, number, 48))
        turn = collect(parse_stream(steps, tokenizer=engine.tokenizer))
        told = not any(isinstance(step.piece, str) for step in steps)
        if told and all(decoded(engine, [each]) for each in ids_of(steps)):
            reason = steps[-1].finish or "abort"
            tokens = parse_stream(ids_of(steps), tokenizer=engine.tokenizer, reason=reason)
            expected = collect(tokens)
            expect(turn == expected, f"the turn is {expected}, not {turn}")


def _expect_whole(engine: Engine, steps: list[Step], limit: int) -> None:
    finishes = [step.finish for step in steps]
    expect(finishes[-1:] in (["stop"], ["length"]), f"the last step has a finish: {finishes}")
    expect(not any(finishes[:-1]), f"only the last step has a finish: {finishes}")
    ids, stops = ids_of(steps), engine.info.stop_ids
    expect(stops.isdisjoint(ids[:-1]), f"nothing comes after a stop id: {ids}")
    expect((ids[-1] in stops) == (finishes[-1] == "stop"), f"stop means a stop id: {ids}")
    expect(len(ids) <= limit, f"at most {limit} tokens, not {len(ids)}")
    expect(len(ids) == limit or finishes[-1] == "stop", f"{limit} tokens, or a stop: {len(ids)}")
