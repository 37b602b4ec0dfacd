"""Exit codes, and the exceptions that lead to them.

Rules: a code is returned or raised by these names only; the help text and
docs/cli.md quote the table below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..parser.fold import Turn

DONE: Final = 0
FLAWED: Final = 1
USAGE: Final = 2
MODEL: Final = 3
LIMIT: Final = 5
"""Of atem-run: a limit ended the task."""
INTERRUPTED: Final = 130
UNREAD: Final = 141
"""What a shell reports for a program that SIGPIPE ended."""

EXIT_CODES: Final = """\b
Exit codes:
  0    done; parse, inspect: the turn is complete and holds no rejected call
  1    parse, inspect: the turn is incomplete or holds a rejected call;
       plan: it does not fit; doctor: a check failed; generate: the turn was cut
  2    a wrong option, or a file that can't be read, used or written
  3    the checkpoint can't be used, or the engine or server failed
  130  interrupted (Ctrl-C)
  141  whoever read the output stopped reading
"""


class Failure(Exception):
    """Nothing can be done; the text is one sentence for the user."""


class OutputUnread(Exception):
    """Whoever read the output has gone, as ``| head -1`` does."""


def of_turn(turn: Turn) -> int:
    """Whether a script may act on the turn as it is."""
    return DONE if turn.complete and not turn.rejected else FLAWED
