"""The options of ``atem-serve``: the table of :mod:`atem.server.settings` as flags.

Rules: those of :mod:`atem.cli.options`. A flag that was not given is not passed
on, so that the environment and the file hold.
"""

from __future__ import annotations

import os
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from ... import __version__
from ...errors import MissingExtra
from ...server.settings import NO_FLAG, PREFIX, options, read_settings
from ..ending import ended
from ..options import SETTINGS
from .print_client import CLIENTS, client_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...server.settings import Option
    from ..options import Function

CONFIG: Final = f"{PREFIX}CONFIG"
NEEDED: Final = ("orjson", "starlette", "uvicorn", "prometheus_client")

EXIT_CODES: Final = """\b
Exit codes:
  0    ended by SIGTERM, after what was running was finished
  2    a wrong option, an address that is taken, a store that can't be used
  3    the checkpoint can't be used, or the engine or server failed
  130  interrupted (Ctrl-C) a second time
"""


def _flags(function: Function) -> Function:
    for option in reversed(options()):
        if option.name not in NO_FLAG:
            function = _flag(option)(function)
    return function


def _flag(option: Option) -> Function:
    shown = "" if option.default in (None, ()) else f"  [{_word(option.default)}]"
    flag = f"{option.flag}/--no-{option.flag[2:]}" if option.switch else option.flag
    kind: dict[str, Any] = {"type": click.Choice(option.choices)} if option.choices else {}
    if not option.switch and not option.choices:
        kind = {"metavar": "NAME" if option.many else "VALUE"}
    return click.option(
        flag, option.name, default=None, multiple=option.many, help=option.help + shown, **kind
    )


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


@click.command(context_settings=SETTINGS, epilog=EXIT_CODES)
@click.option("--config", metavar="FILE", envvar=CONFIG, help="TOML file with these options.")
@click.option(
    "--print-client",
    metavar="NAME",
    type=click.Choice(tuple(CLIENTS)),
    help="Print how a client is set up for this server: codex, opencode, claude or openai.",
)
@_flags
@click.version_option(__version__, prog_name="atem-serve", message="%(prog)s %(version)s")
def atem_serve(config: str | None, print_client: str | None, **flags: Any) -> int:
    """Serve a model over HTTP: Responses, Chat Completions and Messages.

    Every option is also ATEM_SERVE_<NAME> in the environment, and a key of the
    file; a flag wins. Keys of clients are given as ATEM_SERVE_API_KEY or in a
    file, never as a flag. The key of a server behind is taken from ATEM_API_KEY.
    """
    environment = {name: text for name, text in os.environ.items() if name != CONFIG}
    if print_client is not None:
        click.echo(client_text(print_client, read_settings(flags, environment, config)), nl=False)
        return 0
    for module in NEEDED:
        if find_spec(module) is None:
            raise MissingExtra("server", "the command atem-serve")
    from ...server.app import create_app
    from ...server.auth import keys_of
    from ...server.service import blobs_of, store_of
    from ...server.serving import serve
    from .engines import open_engine, sampling_of

    settings = read_settings(flags, environment, config)
    # Whatever can be refused is, before a model is loaded for minutes.
    keys_of(settings)
    blobs_of(settings, "")
    store = store_of(settings)
    with closing(open_engine(settings)) as engine:
        serve(create_app(engine, settings, store=store, sampling=sampling_of(settings)))
    return 0


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    return ended(atem_serve, "atem-serve", arguments)
