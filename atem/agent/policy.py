"""Which of the agent's own tools may run without a question.

Rules: what can't leave the folder and was asked for on the command line may;
for anything else a person decides.
"""

from __future__ import annotations

from typing import Final

from ..tools import Allow, Decision, by_name

ALLOWED: Final[dict[str, Decision]] = {
    name: Allow() for name in ("list_files", "read_file", "search", "write_file", "calculate")
}
"""``write_file`` is declared only if writing was allowed."""

own_tools: Final = by_name(ALLOWED)
