"""The command ``atem-serve``: an engine behind the Responses, Chat Completions and Messages APIs.

Rules: those of :mod:`atem.cli`. ``command`` holds the options, which are those
of :mod:`atem.server.settings`; ``engines`` opens what they name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import started

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``atem-serve`` with ``arguments`` (the process's own by default); the exit code."""
    return started("atem-serve", ".serve.command", arguments, "server")
