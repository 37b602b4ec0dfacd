"""Driving an engine: prompts to ask with, generations run through, what came out.

Rules: for the contract and for tests of engines; an engine is seen through its
protocol alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from .. import wire
from ..engine import GREEDY, Request, Sampling
from ..errors import RenderError, TokenError
from .scripted import wire_ids

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from ..engine import Engine, Step
    from ..wire import Piece

HOT: Final = Sampling(temperature=100.0, top_k=0, top_p=1.0)
"""Nearly uniform: in a small vocabulary, stop tokens and other specials come soon."""


def expect(holds: bool, rule: str) -> None:
    """Raise AssertionError with ``rule`` unless it holds; an ``assert`` is nothing under ``-O``."""
    if not holds:
        raise AssertionError(rule)


def prompt(engine: Engine, number: int = 0, to: str | None = None) -> list[int]:
    """The ids of a small prompt, another one for each ``number``, ragged in their lengths.

    ``to`` opens the answer's body, to that recipient.
    """
    words = f"Question {number}: " + "what comes next? " * (number % 5)
    text = f"{wire.BEGIN_OF_TEXT}{wire.START}user{wire.MESSAGE}{words}{wire.EOT}"
    text += f"{wire.START}{wire.ASSISTANT}"
    text += f" {wire.TO}{to}{wire.MESSAGE}" if to else ""
    try:
        return wire_ids(text, engine.tokenizer)
    except RenderError:  # an export without framing tokens spells them with ordinary pieces
        return engine.tokenizer.encode(text)


def greedy(engine: Engine, number: int = 0, **changes: Any) -> Request:
    """A request for the likeliest tokens after ``prompt(engine, number)``, twelve of them."""
    base = Request(prompt(engine, number), GREEDY, max_tokens=12)
    return replace(base, **changes)


def hot(engine: Engine, number: int, max_tokens: int) -> Request:
    """A request for nearly uniform tokens, the same ones each time where seeds are honoured."""
    seed = number if "seed" in engine.info.features else None
    return Request(prompt(engine, number), replace(HOT, seed=seed), max_tokens=max_tokens)


def run(engine: Engine, request: Request) -> list[Step]:
    """All steps of one generation."""
    return list(engine.generate(request))


def runs(engine: Engine, requests: Iterable[Request]) -> list[list[int]]:
    """The ids of each request, one after the other."""
    return [ids_of(run(engine, request)) for request in requests]


def in_turns(engine: Engine, requests: Iterable[Request]) -> list[list[int]]:
    """The ids of each request, all at the same time, a step from each in turns."""
    running = [engine.generate(request) for request in requests]
    steps: list[list[Step]] = [[] for _ in running]
    waiting = list(zip(running, steps, strict=True))
    while waiting:
        for one in list(waiting):
            step = next(one[0], None)
            if step is None:
                waiting.remove(one)
            else:
                one[1].append(step)
    return [ids_of(each) for each in steps]


def refuses(engine: Engine, request: Request, error: type[Exception]) -> bool:
    """Whether the call itself raises ``error``, before any step is asked for."""
    try:
        steps = engine.generate(request)
    except error:
        return True
    cast("Generator[Step]", steps).close()
    return False


def ids_of(steps: Iterable[Step]) -> list[int]:
    """The ids of all steps."""
    return [number for step in steps for number in step.ids]


def pieces_of(steps: Iterable[Step]) -> list[str | Piece] | None:
    """The pieces of all steps, or None if one leaves decoding to the reader."""
    pieces: list[str | Piece] = []
    for step in steps:
        if step.pieces is None:
            return None
        pieces += step.pieces
    return pieces


def decoded(engine: Engine, ids: Sequence[int]) -> str:
    """The text of ``ids``; one that the tokenizer doesn't know has none."""
    return b"".join(_bytes(engine, number) for number in ids).decode("utf-8", "replace")


def _bytes(engine: Engine, number: int) -> bytes:
    try:
        return engine.tokenizer.token_bytes(number)
    except TokenError:
        return b""
