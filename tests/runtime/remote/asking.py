"""Engines in front of the test servers, and prompts to ask them with."""

from __future__ import annotations

import contextlib

from atem.engine import GREEDY, Request
from atem.render import Segment
from atem.render.prompt import Prompt
from atem.runtime.remote import Patience, RemoteEngine
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap

TOKENIZER = wrap(tiny_tokenizer())
PROMPT = Prompt(
    (
        Segment("<|begin_of_text|>", "control"),
        Segment("<|start|>", "control"),
        Segment("user"),
        Segment("<|message|>", "control"),
        Segment("When is high water?"),
        Segment("<|eot|>", "control"),
        Segment("<|start|>", "control"),
        Segment("assistant"),
    )
)


def hasty(retries=2, **fields):
    """Patience that notes its waits and doesn't wait."""
    waits = []
    return Patience(retries, sleep=waits.append, chance=lambda: 1.0, **fields), waits


@contextlib.contextmanager
def engine(server, /, **options):
    options.setdefault("retries", hasty()[0])
    made = RemoteEngine(server if isinstance(server, str) else server.url, **options)
    try:
        yield made
    finally:
        made.close()


def ask(prompt=PROMPT, sampling=GREEDY, **fields):
    fields.setdefault("max_tokens", 64)
    return Request(prompt, sampling, **fields)


def text_of(steps):
    """The text of all steps, joined."""
    return "".join(map(_text, steps))


def _text(step):
    pieces = step.piece if isinstance(step.piece, tuple) else (step.piece,)
    return "".join(getattr(piece, "text", piece) for piece in pieces)


def pieces_of(steps):
    """The pieces of all steps, neighbours of one kind joined."""
    joined = []
    for piece in (piece for step in steps for piece in step.piece or ()):
        if joined and not piece.special and not joined[-1][1]:
            joined[-1] = (joined[-1][0] + piece.text, False)
        elif piece.text:
            joined.append(tuple(piece))
    return joined
