"""What a client has to know: address, model, room, and where its key comes from.

Rules: no weight is read. A checkpoint's headers, a script or the server behind
say what the settings leave open.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ....errors import OptionError, RopeUndecided
from ....runtime.embedded import NANO, located
from ..engines import SCRIPTED, open_engine

if TYPE_CHECKING:
    from pathlib import Path

    from ....server.settings import Settings

KEY_VARIABLE: Final = "ATEM_API_KEY"
"""Where a client finds its key. Not ATEM_SERVE_API_KEY, which holds all keys of a server."""

NO_KEY: Final = "none"
"""What a client sends that insists on a key, to a server that wants none."""

MOST_OUTPUT: Final = 32_000

EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where it is reached
"""An address that stands for all of a machine's -> the one that this machine reaches it by."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server as a client sees it; ``root`` is its address without ``/v1``.

    ``context`` are the tokens of prompt and answer together. ``keyed`` says
    that it wants a key, ``websocket`` that it answers WebSockets.
    """

    root: str
    model: str
    context: int
    keyed: bool = False
    websocket: bool = True

    @property
    def output(self) -> int:
        """Tokens of an answer for which a client leaves room in the context."""
        return min(MOST_OUTPUT, max(1, self.context // 4))

    @property
    def url(self) -> str:
        """The address of the two APIs of OpenAI's."""
        return f"{self.root}/v1"


def endpoint_of(settings: Settings) -> Endpoint:
    """The server that these settings start. Raises OptionError for one without an address."""
    if settings.port == 0:
        raise OptionError("port=0 is any free one; name the port that the client is to use")
    host = EVERYWHERE.get(settings.host, settings.host)
    model, context = _model(settings)
    return Endpoint(
        f"http://{f'[{host}]' if ':' in host else host}:{settings.port}",
        model,
        context,
        keyed=bool(settings.api_key or settings.api_key_file),
        websocket=settings.websocket,
    )


def _model(settings: Settings) -> tuple[str, int]:
    """The name that it answers to, and the length of its context."""
    names = [name for name in settings.model_name if "*" not in name]
    if names and settings.context:
        return names[0], settings.context
    model, context = _opened(settings)
    if settings.model_name and not names:
        raise OptionError(
            f"model_name={', '.join(settings.model_name)!r} are patterns; give a name as well"
        )
    return (names or [model])[0], settings.context or context


def _opened(settings: Settings) -> tuple[str, int]:
    """What the engine says of itself; of a checkpoint its headers do."""
    from ....runtime.load import is_address

    engine = settings.engine or NANO
    if engine.startswith(SCRIPTED) or is_address(engine):
        with closing(open_engine(settings)) as opened:
            return opened.info.model, opened.info.context
    return _headers(located(engine))


def _headers(path: str | Path) -> tuple[str, int]:
    from ....runtime.layouts import open_checkpoint

    try:
        checkpoint = open_checkpoint(path)
    except RopeUndecided:  # which changes neither name nor length
        checkpoint = open_checkpoint(path, rope_style="half")
    with closing(checkpoint):
        return checkpoint.path.name, checkpoint.config.max_position_embeddings
