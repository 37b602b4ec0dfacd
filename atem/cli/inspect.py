"""``atem inspect``: a turn as the parser sees it, for a person.

Rules: the text is fed character by character, so that what the parser held
back is measured, not guessed; what is shown is ``paint``'s and ``screen``'s work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import exits, source
from .files import read_tools
from .options import command, file_argument, parser_options, reason_option, tools_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..parser.api import Parser
    from ..parser.options import Reason
    from .paint import Seen


@command
@file_argument
@tools_option
@reason_option
@parser_options
def inspect(file: str, *, tools: str | None, reason: Reason, **options: Any) -> int:
    """Show what each character of a turn is to the parser.

    Framing is dim, reasoning italic, a call green, a rejected call red, text
    that nobody gets struck through, and text that the parser had to hold back
    underlined. NO_COLOR, or output that is not a terminal, leaves the labels
    alone; FORCE_COLOR colours a pipe.
    """
    from ..parser.api import Parser
    from ..parser.fold import collect
    from .paint import rows
    from .screen import show

    parser = Parser(tools=read_tools(tools), **options)
    text = source.read(file).decode("utf-8", "replace")
    seen = list(_watch(parser, text, reason))
    turn = collect(event for event, _ in seen)
    show(rows(text, seen, turn))
    return exits.of_turn(turn)


def _watch(parser: Parser, text: str, reason: Reason) -> Iterator[Seen]:
    from .paint import Seen

    for read, character in enumerate(text, 1):
        for event in parser.feed(character):
            yield Seen(event, read)
    for event in parser.close(reason):
        yield Seen(event, len(text) + 1)
