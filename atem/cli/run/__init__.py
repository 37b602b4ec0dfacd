"""The command ``atem-run``: a small local agent that works in one folder.

Rules: those of :mod:`atem.cli`. ``command`` holds the options, ``task`` runs one
message, ``talk`` asks for one after another, ``transcript`` is for a person and
``lines`` for a program. The answer goes to standard output; everything else,
for a person, to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import started

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``atem-run`` with ``arguments`` (the process's own by default); the exit code."""
    return started("atem-run", ".run.command", arguments)
