"""The command group ``atem``.

Rules: one file a command; what becomes of its errors is ``ending``'s work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import __version__
from . import exits
from .doctor import doctor
from .ending import ended
from .generate import generate
from .inspect import inspect
from .options import SETTINGS
from .parse import parse
from .plan import plan
from .render import render

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(context_settings=SETTINGS, epilog=exits.EXIT_CODES, no_args_is_help=False)
@click.version_option(__version__, prog_name="atem", message="%(prog)s %(version)s")
def atem() -> None:
    """ATEM, the wire format of Muse Glimmer: read its turns, write its prompts, run the model."""


for _command in (parse, render, inspect, plan, doctor, generate):
    atem.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    return ended(atem, "atem", arguments)
