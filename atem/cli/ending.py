"""What becomes of whatever a command raises.

Rules: no traceback for anything that a user can do; each complaint is one line
on standard error that begins with the name of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import AtemError, CheckpointError, EngineError
from . import exits
from .output import note
from .screen import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def ended(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run ``command``, which is called ``name``; the exit code."""
    try:
        return int(command.main(arguments, prog_name=name, standalone_mode=False) or exits.DONE)
    except click.Abort:
        return exits.INTERRUPTED
    except exits.OutputUnread:
        return exits.UNREAD
    except click.UsageError as error:
        complain(name, _usage(error, name))
    except (AtemError, exits.Failure, click.ClickException) as error:
        complain(name, str(error))
        if isinstance(error, CheckpointError | EngineError):
            return exits.MODEL
    return exits.USAGE


def complain(name: str, text: str) -> None:
    """Say on standard error, in one line, what is wrong."""
    note(f"{name}: {one_line(text)}\n")


def _usage(error: click.UsageError, name: str) -> str:
    path = error.ctx.command_path if error.ctx is not None else name
    said = error.format_message().rstrip(".")
    return f"{said}; see {path} --help"
