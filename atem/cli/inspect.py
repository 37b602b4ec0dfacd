"""``atem inspect``: a turn as the parser sees it, for a person.

Rules: the text is fed character by character, so that what the parser held
back is measured, not guessed; what is shown is ``paint``'s and ``screen``'s work.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import OptionError
from . import exits, source
from .files import read_tools
from .options import command, file_argument, parser_options, reason_option, tools_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..parser.api import Parser
    from ..parser.options import Reason
    from .paint import Seen

html_option: Final = click.option(
    "--html",
    metavar="FILE",
    help="Write a page to FILE instead, to step through in a browser. It needs no server.",
)


@command
@file_argument
@tools_option
@reason_option
@html_option
@parser_options
def inspect(
    file: str, *, tools: str | None, reason: Reason, html: str | None, **options: Any
) -> int:
    """Show what each character of a turn is to the parser.

    Framing is dim, reasoning italic, a call green, a rejected call red, text
    that nobody gets struck through, and text that the parser had to hold back
    underlined. NO_COLOR, or output that is not a terminal, leaves the labels
    alone; FORCE_COLOR colours a pipe. With --html it is a page to step through.
    """
    from ..parser.api import Parser
    from ..parser.fold import collect
    from .paint import rows
    from .screen import show

    options["tools"] = read_tools(tools)
    parser = Parser(**options)
    text = source.read(file).decode("utf-8", "replace")
    seen = list(_watch(parser, text, reason))
    turn = collect(event for event, _ in seen)
    if html is None:
        show(rows(text, seen))
    else:
        _write_page(html, file, text, reason, options)
    return exits.of_turn(turn)


def _watch(parser: Parser, text: str, reason: Reason) -> Iterator[Seen]:
    from .paint import Seen

    for read, character in enumerate(text, 1):
        for event in parser.feed(character):
            yield Seen(event, read)
    for event in parser.close(reason):
        yield Seen(event, len(text) + 1)


def _write_page(page: str, file: str, text: str, reason: Reason, options: dict[str, Any]) -> None:
    from ..server.inspector.page import standalone
    from ..trace.pieces import cut
    from ..trace.tracer import trace

    title = "standard input" if file == source.STDIN else Path(file).name
    try:
        shown = {"title": title, "trace": trace(cut(text), reason, **options)}
        Path(page).write_bytes(standalone(shown))
    except OptionError as error:
        raise exits.Failure(f"{file}: {error}") from error
    except OSError as error:
        raise exits.Failure(f"{page}: {error.strerror or error}") from error
