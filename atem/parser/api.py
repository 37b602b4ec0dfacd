"""Parsing as a caller sees it: whole, as a stream, or pushed.

Rules: one class does the work, three functions wrap it. No IO, clock or thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn, TypeAlias, Unpack

from ..errors import ParserClosed, UnknownTool
from .context import Context
from .fold import Turn, collect
from .intake import Intake
from .machine import Machine
from .options import Options, ParserOptions, Reason
from .scanner import HELD

if TYPE_CHECKING:
    from ..messages import RejectedCall
    from .events import Event
    from .standing import Standing

ReasonOrAsk: TypeAlias = Reason | Callable[[], Reason]
"""Why a stream ended, or a callable that is asked at its end."""


class Parser:
    """Turns tokens into events, in any chunking, with the same result.

    ``tools`` are the declared tools in any form that :class:`ToolSet` takes.
    ``tokenizer`` (a :class:`atem.tokenizer.Tokenizer`, or one that can be
    wrapped) lets ids be fed. The other options are those of
    :class:`~atem.parser.options.Options` (docs/parser.md tells them all).

    Raises OptionError for a value that can't work, TypeError for an unknown
    option. What the model writes never raises, but for UnknownTool under
    ``unknown="raise"``; the parser stays usable after that, and the events
    up to there come with the next ``feed`` or ``close``.
    """

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        tokenizer = options.pop("tokenizer", None)
        self._context = Context(Options.of(options))
        self._machine = Machine(self._context)
        self._intake = Intake(self._machine, tokenizer)
        self._closed = False

    @property
    def done(self) -> bool:
        """Whether the turn is over, so that generation may stop."""
        return self._closed or self._machine.over

    @property
    def standing(self) -> Standing:
        """Where it stands between two tokens: for inspectors, not to act on."""
        return self._machine.standing

    def feed(self, token: object) -> list[Event]:
        """The events that ``token`` brings.

        A token is a ``str``, ``bytes`` (UTF-8, cut anywhere), a ``Piece``, an
        ``int`` id (with ``tokenizer=``) or an engine's ``Step``. Raises
        TokenError for anything else, ParserClosed after ``close``.
        """
        if token.__class__ is str:
            event = self._machine.quick(token)
            if event is not None:
                return [] if event is HELD else [event]
        return self._feed(token)

    def _feed(self, token: object) -> list[Event]:
        if self._closed:
            raise ParserClosed("feed() after close(); make a new Parser for the next turn")
        if token.__class__ is str and not self._intake.pending:
            self._machine.text(token)
        else:
            self._intake.feed(token)
        return self._take()

    def close(self, reason: ReasonOrAsk = "stop") -> list[Event]:
        """End the stream; the events that were held, ``TurnEnd`` last.

        ``reason`` is "stop", or "length" or "abort" if more would have come:
        a caller who knows that a stream was cut must say so. An engine's last
        step that says "length" or "abort" counts as well. Closing again gives nothing.
        """
        if not self._closed:
            self._machine.end(cut=self._intake.close(reason))
            self._closed = True
        return self._take()

    def _take(self) -> list[Event]:
        context = self._context
        if context.unknown:
            self._raise_unknown(context.unknown.pop(0))
        out = context.out
        events, out.events = out.events, []
        return events

    def _raise_unknown(self, rejected: RejectedCall) -> NoReturn:
        self._machine.pause()  # what was read so far comes first
        raise UnknownTool(
            f"the model called {rejected.raw_name!r}, which is not declared; "
            "answer it with ToolSet.feedback(error.rejected)",
            rejected,
        )


def parse_stream(
    tokens: Iterable[object], *, reason: ReasonOrAsk = "stop", **options: Unpack[ParserOptions]
) -> Iterator[Event]:
    """The events of a stream of tokens, as they become certain enough to show.

    ``reason`` says how the stream ended (a callable is asked at the end); the
    other options are those of :class:`Parser`, which also tells what raises.
    """
    parser = Parser(**options)
    return _pull(parser, tokens, reason)


def _pull(parser: Parser, tokens: Iterable[object], reason: ReasonOrAsk) -> Iterator[Event]:
    # Like feed(), without a list for the one event of nearly every token.
    machine, feed = parser._machine, parser._feed  # noqa: SLF001 (of this module)
    for token in tokens:
        event = machine.quick(token) if token.__class__ is str else None
        if event is None:
            yield from feed(token)
        elif event is not HELD:
            yield event
    yield from parser.close(reason)


def aparse_stream(
    tokens: AsyncIterable[object], *, reason: ReasonOrAsk = "stop", **options: Unpack[ParserOptions]
) -> AsyncIterator[Event]:
    """:func:`parse_stream` for an asynchronous source of tokens."""
    return _apull(Parser(**options), tokens, reason)


async def _apull(
    parser: Parser, tokens: AsyncIterable[object], reason: ReasonOrAsk
) -> AsyncIterator[Event]:
    async for token in tokens:
        for event in parser.feed(token):
            yield event
    for event in parser.close(reason):
        yield event


def parse(
    tokens: str | bytes | Iterable[object],
    *,
    reason: ReasonOrAsk = "stop",
    **options: Unpack[ParserOptions],
) -> Turn:
    """The whole turn in ``tokens``: one text, or any iterable of tokens."""
    whole = [tokens] if isinstance(tokens, str | bytes) else tokens
    return collect(parse_stream(whole, reason=reason, **options))
