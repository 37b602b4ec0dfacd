"""The command ``atem``: turns, prompts and models from a shell.

Rules: arguments in, bytes out, an exit code at the end; what a program would
want is in the library. One file a command; ``app`` holds what they share with
the shell, ``options`` their common options. click and rich come with the extra
``[agent]``, so this module imports neither. Whatever is slow is imported by the
command that uses it: ``atem --help`` pays for none of it.

``source`` reads, ``output`` writes, ``files`` are the JSON files of a user,
``records`` the JSON of a turn, ``paint`` and ``screen`` what ``inspect`` shows,
``model`` what the commands that open a checkpoint share.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``atem`` with ``arguments`` (the process's own by default); the exit code.

    Without the extra it prints the line that installs it and returns 2.
    """
    return started("atem", ".app", arguments)


def started(name: str, module: str, arguments: Sequence[str] | None, extra: str = "agent") -> int:
    """Run the command ``name``, which is ``run`` in ``module`` of this package; the exit code.

    ``extra`` is what installs its dependencies.
    """
    from .exits import INTERRUPTED, USAGE

    try:
        return int(import_module(module, __name__).run(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        from ..errors import MissingExtra

        sys.stderr.write(f"{name}: {MissingExtra(extra, f'the command {name}')}\n")
        return USAGE
