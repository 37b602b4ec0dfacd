"""The options of ``atem-run``, and the session that they ask for.

Rules: those of :mod:`atem.cli.options`.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from ... import __version__
from ...render import EFFORTS
from ..ending import ended
from ..exits import Failure
from ..model import given, model_options, named_model, progress_bar, tokenizer_in
from ..options import SETTINGS
from ..source import STDIN, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...engine import Engine
    from ...session import Session

EXIT_CODES: Final = """\b
Exit codes:
  0    done: the model answered; without -p: the input ended
  1    the task failed: no answer, or the same call failed again and again
  2    a wrong option, or a folder that can't be used
  3    the checkpoint can't be used, or the engine or server failed
  5    a limit: of turns, of tokens in a turn, or of the context
  130  interrupted (Ctrl-C)
  141  whoever read the output stopped reading
"""


@click.command(context_settings=SETTINGS, epilog=EXIT_CODES)
@click.option("-p", "--prompt", metavar="TEXT", help='What to do; "-" reads it. Else it asks.')
@click.option("--model", metavar="nano|PATH|URL", help="nano, a checkpoint, or a server.")
@click.option("--dir", "folder", default=".", metavar="DIR", help="The folder to work in.  [.]")
@click.option("--allow-write", is_flag=True, help="Let the model write files in it.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one an event.")
@click.option("--system", metavar="TEXT", help="A system message in place of the default one.")
@click.option("--effort", type=click.Choice(list(EFFORTS)), help="How hard to think.")
@click.option("--max-turns", "turns", type=int, metavar="N", help="Ask the model this often.")
@click.option("--max-tokens", "tokens", type=int, metavar="N", help="Tokens of one turn.")
@click.option("--temperature", type=float, help="0 takes the likeliest token each time.")
@click.option("--seed", type=int, help="The same seed gives the same text.")
@model_options
@click.option("--server-model", metavar="NAME", help="For a server with several models.")
@click.option("--tokenizer", metavar="FILE", help="For a server: tokenizer.json, to speak in ids.")
@click.version_option(__version__, prog_name="atem-run", message="%(prog)s %(version)s")
def atem_run(
    prompt: str | None,
    *,
    model: str | None,
    folder: str,
    allow_write: bool,
    as_json: bool,
    turns: int | None,
    tokens: int | None,
    temperature: float | None,
    seed: int | None,
    system: str | None,
    effort: str | None,
    **options: Any,
) -> int:
    """Work on a task in a folder, with a model that can list, read and search it.

    With --allow-write it can also write. It can't leave the folder, follow
    links, or run commands. Without --prompt it asks, and each line of standard
    input is a message; Ctrl-C stops a turn. The key of a server is taken from
    ATEM_API_KEY.
    """
    from ...engine import Sampling
    from ...session import Limits
    from .talk import as_text

    text = None if prompt is None else _message(as_text(prompt))
    limits = Limits(**given({"turns": turns, "tokens": tokens}))
    asked: dict[str, Any] = {
        "system": system and as_text(system),
        "effort": effort,
        "limits": limits,
    }
    tools = _tools(folder, allow_write=allow_write)
    name = named_model(model)
    chosen = given({"temperature": temperature, "seed": seed})
    Sampling(**chosen)  # a value that can't work is said before anything is loaded
    with closing(_loaded(name, options)) as engine:
        asked["sampling"] = replace(engine.info.sampling, **chosen)
        return _worked(_session(engine, tools, asked), text, as_json=as_json)


def _message(prompt: str) -> str:
    text = read(STDIN).decode("utf-8", "replace") if prompt == STDIN else prompt
    if not text.strip():
        raise Failure("the prompt is empty; say what to do")
    return text


def _tools(folder: str, *, allow_write: bool) -> list[Any]:
    from ...agent import calculate, file_tools

    return [*file_tools(folder, allow_write=allow_write), calculate]


def _loaded(model: str, options: dict[str, Any]) -> Engine:
    from ...runtime.load import is_address, load

    options["tokenizer"] = tokenizer_in(options["tokenizer"])
    options["model"] = options.pop("server_model")
    if is_address(model):
        options["api_key"] = os.environ.get("ATEM_API_KEY")
    with progress_bar() as progress:
        return load(model, progress=progress, **given(options))


def _session(engine: Engine, tools: list[Any], asked: dict[str, Any]) -> Session:
    from ...agent.policy import own_tools
    from ...session import Session

    return Session(engine, tools=tools, policy=own_tools, **asked)


def _worked(session: Session, text: str | None, *, as_json: bool) -> int:
    from .lines import Lines
    from .talk import talk
    from .task import run_task
    from .transcript import Transcript

    show = Lines if as_json else Transcript
    return talk(session, show) if text is None else run_task(session, text, show())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    return ended(atem_run, "atem-run", arguments)
