"""``atem-serve --print-client``: how a client is told about this server.

Rules: what is printed is ready to be used as it is, and holds no key: it names
the variable that the client reads it from. One module a client, each a function
from an :class:`~.endpoint.Endpoint` to text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...output import note
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

AGENTS: Final = ("codex", "opencode", "claude")
NEEDED: Final = 16_384
"""Tokens of context. Their first requests have 14,000 (Codex) to 49,000 (Claude Code) characters
of JSON."""


def client_text(client: str, settings: Settings) -> str:
    """The configuration of ``client`` for a server with these settings.

    It is said if the context can't hold what an agent sends before anything was
    said. Raises OptionError where they don't say the address, and what opening
    the engine raises where they don't say the model.
    """
    endpoint = endpoint_of(settings)
    if client in AGENTS and endpoint.context < NEEDED:
        note(
            f"atem-serve: a context of {endpoint.context} tokens is short for {client}, whose "
            "instructions and tools alone are several thousand\n"
        )
    return CLIENTS[client](endpoint)
