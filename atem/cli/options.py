"""Options that several commands have, and those of the parser.

Rules: an option is the library's, under its name with dashes, with its choices
and its default; whether a combination works is the library's to say.
``unknown="raise"`` is left out: the exit code says it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeAlias

import click

from ..parser.options import CHOICES, Options
from .exits import EXIT_CODES

Function: TypeAlias = Callable[..., Any]

DEFAULTS: Final[dict[str, Any]] = {field.name: field.default for field in fields(Options)}

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


def option(name: str, text: str, **details: Any) -> Function:
    """The parser's option ``name`` with its default; ``details`` are click's."""
    shown = {"default": DEFAULTS[name], "show_default": True, "help": text}
    return click.option(f"--{name.replace('_', '-')}", **{**shown, **details})


def choice(name: str, text: str, *, without: str = "") -> Function:
    """The parser's option ``name`` with its choices."""
    return option(
        name, text, type=click.Choice([each for each in CHOICES[name] if each != without])
    )


def _recoveries(context: click.Context, parameter: click.Parameter, value: str) -> frozenset[str]:
    return frozenset() if value == "none" else frozenset(value.split(","))


_PARSER_OPTIONS: Final = (
    choice("unknown", "What becomes of a call to an undeclared tool.", without="raise"),
    choice("names", "How far a written name may be from a declared one."),
    choice("validate", "What becomes of arguments that break the tool's schema."),
    option(
        "recover",
        "Defects to read past: none, or some of reasoning,headerless,glued.",
        callback=_recoveries,
        default=",".join(sorted(DEFAULTS["recover"])),
        metavar="LIST",
    ),
    click.option("--channel", metavar="NAME", help="The channel that the prompt has opened."),
    choice("profile", "The model family."),
    click.option(
        "--strict-recipient", is_flag=True, help="Reject calls in a channel that isn't theirs."
    ),
    click.option(
        "--one-invoke-per-message", is_flag=True, help="Reject messages with more than one call."
    ),
    option("max_header", "Characters of a header.", type=int),
    option("max_call_chars", "Characters of a message with calls.", type=int),
)


def parser_options(function: Function) -> Function:
    """Give a command the options of :class:`atem.Parser` that a shell can give."""
    for decorate in reversed(_PARSER_OPTIONS):
        function = decorate(function)
    return function
