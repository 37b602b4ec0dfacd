"""What the commands that open a model share: their options, and the bar that shows progress.

Rules: an option is that of ``atem.load``, under its name with dashes; one that
was not given is not passed on, so that the library's default holds.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..runtime.embedded import NANO
from .output import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine import Progress
    from .options import Function

path_argument: Final = click.argument("path", metavar="[PATH]", required=False)

_OPTIONS: Final = (
    click.option("--backend", metavar="NAME", help="torch, reference or remote; else by itself."),
    click.option("--device", metavar="NAME", help="For torch: cpu, cuda, cuda:1, ..."),
    click.option("--dtype", metavar="NAME", help="For torch: float32 or bfloat16."),
    click.option(
        "--rope-style",
        type=click.Choice(["half", "pairs"]),
        help="Order of the q and k rows, where an older export leaves it open.",
    ),
)


def model_options(function: Function) -> Function:
    """Give a command the options of ``atem.load`` that a shell can give."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


probe_option: Final = click.option(
    "--probe/--no-probe",
    default=None,
    help="Read a short text in other ways too and compare the losses; by itself where it is quick.",
)


def named_model(model: str | None) -> str:
    """The model that was named, or else the one that comes with atem; that is said."""
    if model is not None:
        return model
    note(f"atem: no model was named, so this is {NANO}, the small one that comes with atem\n")
    return NANO


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in options.items() if value is not None}


def tokenizer_in(file: str | None) -> Any:
    """The tokenizer in ``file``, if one is named."""
    if file is None:
        return None
    from ..runtime.tokens import read_tokenizer

    return read_tokenizer(Path(file))


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None] | None]:
    """A listener that draws on standard error; None where nobody sees it, or without rich."""
    if sys.stderr is None or not sys.stderr.isatty() or find_spec("rich") is None:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total)
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        yield show
