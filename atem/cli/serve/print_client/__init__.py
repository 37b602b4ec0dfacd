"""``atem-serve --print-client``: how a client is told about this server.

Rules: what is printed is ready to be used as it is, and holds no key: it names
the variable that the client reads it from. One module a client, each a function
from an :class:`~.endpoint.Endpoint` to text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .claude import claude
from .codex import codex
from .endpoint import Endpoint, endpoint_of
from .openai import openai
from .opencode import opencode

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....server.settings import Settings

__all__ = ["CLIENTS", "Endpoint", "client_text"]

CLIENTS: Final[dict[str, Callable[[Endpoint], str]]] = {
    "codex": codex,
    "opencode": opencode,
    "claude": claude,
    "openai": openai,
}
"""Client -> what is printed for it."""


def client_text(client: str, settings: Settings) -> str:
    """The configuration of ``client`` for a server with these settings.

    Raises OptionError where they don't say the address, and what opening the
    engine raises where they don't say the model.
    """
    return CLIENTS[client](endpoint_of(settings))
