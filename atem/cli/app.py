"""The command group, and what becomes of whatever a command raises.

Rules: no traceback for anything that a user can do; each complaint is one line
on standard error that begins with "atem:".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .. import __version__
from ..errors import AtemError, CheckpointError, EngineError
from . import exits
from .doctor import doctor
from .generate import generate
from .inspect import inspect
from .options import SETTINGS
from .parse import parse
from .plan import plan
from .render import render
from .screen import one_line

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
    try:
        return int(atem.main(arguments, prog_name="atem", standalone_mode=False) or exits.DONE)
    except click.Abort:
        return exits.INTERRUPTED
    except exits.OutputUnread:
        return exits.UNREAD
    except click.UsageError as error:
        _complain(_usage(error))
    except (CheckpointError, EngineError) as error:
        _complain(str(error))
        return exits.MODEL
    except (AtemError, exits.Failure, click.ClickException) as error:
        _complain(str(error))
    return exits.USAGE


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "atem"
    said = error.format_message().rstrip(".")
    return f"{said}; see {path} --help"


def _complain(text: str) -> None:
    sys.stderr.write(f"atem: {one_line(text)}\n")
