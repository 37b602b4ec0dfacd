"""``atem doctor``: whether a checkpoint is the right model, whole, and read the right way."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from . import exits, output
from .model import given, model_options, named_model, path_argument, probe_option, progress_bar
from .options import command
from .screen import one_line

if TYPE_CHECKING:
    from ..checkup import Check


@command
@path_argument
@model_options
@probe_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one a check.")
def doctor(path: str | None, *, as_json: bool, **options: Any) -> int:
    """Examine a checkpoint, file by file and number by number.

    PATH is a folder or a .gguf file; without it, the model that comes with
    atem. Ends with 1 if a check failed.
    """
    from ..checkup import doctor as examine

    with progress_bar() as progress:
        found = examine(named_model(path), progress=progress, **given(options))
    lines = (json.dumps(asdict(check)) if as_json else _line(check) for check in found.checks)
    output.write("".join(f"{line}\n" for line in lines).encode())
    return exits.DONE if found.ok else exits.FLAWED


def _line(check: Check) -> str:
    text = check.found + (f" ({check.advice})" if check.advice else "")
    return f"{check.verdict:<8}{check.name:<11}{one_line(text)}"
