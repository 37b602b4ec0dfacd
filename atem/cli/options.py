"""Options that several commands have, and those of the parser.

Rules: an option is the library's, under its name with dashes, with its choices
and its default; whether a combination works is the library's to say.
``unknown="raise"`` is left out: the exit code says it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import click

from ..parser.options import CHOICES
from .exits import EXIT_CODES

Function: TypeAlias = Callable[..., Any]

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


def command(function: Function) -> click.Command:
    """The decorator of every command: its help ends with the exit codes."""
    made: click.Command = click.command(context_settings=SETTINGS, epilog=EXIT_CODES)(function)
    return made


tools_option: Final = click.option(
    "--tools", metavar="FILE", help="JSON list of the declared tools, in any form that atem takes."
)
file_argument: Final = click.argument("file", default="-", metavar="[FILE|-]")
reason_option: Final = click.option(
    "--reason",
    type=click.Choice(CHOICES["reason"]),
    default="stop",
    show_default=True,
    help="Why the generation ended. Say length if it was cut: a cut call must not run.",
)


def _choice(name: str, default: str, text: str, *, without: str = "") -> Function:
    choices = [choice for choice in CHOICES[name] if choice != without]
    kind = click.Choice(choices)
    return click.option(f"--{name}", type=kind, default=default, show_default=True, help=text)


def _recoveries(context: click.Context, option: click.Parameter, value: str) -> frozenset[str]:
    return frozenset() if value == "none" else frozenset(value.split(","))


_PARSER_OPTIONS: Final = (
    _choice("unknown", "reject", "What becomes of a call to an undeclared tool.", without="raise"),
    _choice("names", "safe", "How far a written name may be from a declared one."),
    _choice("validate", "report", "What becomes of arguments that break the tool's schema."),
    click.option(
        "--recover",
        callback=_recoveries,
        default="reasoning",
        show_default=True,
        metavar="LIST",
        help="Defects to read past: none, or some of reasoning,headerless,glued.",
    ),
    click.option("--channel", metavar="NAME", help="The channel that the prompt has opened."),
    _choice("profile", "glimmer", "The model family."),
    click.option(
        "--strict-recipient", is_flag=True, help="Reject calls in a channel that isn't theirs."
    ),
    click.option(
        "--one-invoke-per-message", is_flag=True, help="Reject messages with more than one call."
    ),
    click.option(
        "--max-header", type=int, default=256, show_default=True, help="Characters of a header."
    ),
    click.option(
        "--max-call-chars",
        type=int,
        default=16 * 1024 * 1024,
        show_default=True,
        help="Characters of a message with calls.",
    ),
)


def parser_options(function: Function) -> Function:
    """Give a command the options of :class:`atem.Parser` that a shell can give."""
    for option in reversed(_PARSER_OPTIONS):
        function = option(function)
    return function
