"""``atem parse``: a turn as JSON lines.

Rules: no judgement of its own. Events are printed with the read that brought
them; the exit code says whether the turn can be acted on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from . import exits, output, source
from .files import read_tools
from .options import choice, command, file_argument, parser_options, reason_option, tools_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..parser.api import Parser
    from ..parser.events import Event
    from ..parser.options import Reason

REPLAY: Final = 16
"""Bytes at a time when a delay is asked for but no size: a few tokens."""


@command
@file_argument
@tools_option
@click.option(
    "--events/--turn",
    default=True,
    show_default=True,
    help="One line an event as it comes, or one line for the whole turn at the end.",
)
@reason_option
@choice("arguments", "Whether a call's events come while it is written or once it is decided.")
@click.option(
    "--chunk", type=click.IntRange(min=1), metavar="N", help="Feed at most N bytes at a time."
)
@click.option(
    "--stream-delay",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help=f"Replay slowly: wait after each piece (of {REPLAY} bytes unless --chunk says otherwise).",
)
@parser_options
def parse(
    file: str,
    *,
    tools: str | None,
    events: bool,
    reason: Reason,
    chunk: int | None,
    stream_delay: float | None,
    **options: Any,
) -> int:
    """Parse a turn to JSON lines, as it arrives.

    A turn is what a model wrote behind the "<|start|>assistant" that ended its
    prompt. It may come from a file or through a pipe. docs/cli.md describes
    the lines.
    """
    from ..parser.api import Parser

    parser = Parser(tools=read_tools(tools), **options)
    size = chunk or (source.LARGEST if stream_delay is None else REPLAY)
    data = source.pieces(file, size=size, delay=stream_delay or 0.0)
    batches = _batches(parser, data, reason)
    return _print_events(batches) if events else _print_turn(batches)


def _batches(parser: Parser, data: Iterable[bytes], reason: Reason) -> Iterator[list[Event]]:
    for piece in data:
        yield parser.feed(piece)
    yield parser.close(reason)


def _print_events(batches: Iterable[list[Event]]) -> int:
    from ..trace.records import event_record, line

    flawed = False
    for events in batches:
        output.write(b"".join(line(event_record(event)) for event in events))
        flawed = flawed or any(map(_is_flaw, events))
    return exits.FLAWED if flawed else exits.DONE


def _is_flaw(event: Event) -> bool:
    from ..parser.events import CallRejected, TurnEnd

    if isinstance(event, TurnEnd):
        return not event.complete
    return isinstance(event, CallRejected) and event.rejected is not None


def _print_turn(batches: Iterable[list[Event]]) -> int:
    from ..parser.fold import collect
    from ..trace.records import line, turn_record

    turn = collect(event for events in batches for event in events)
    output.write(line(turn_record(turn)))
    return exits.of_turn(turn)
