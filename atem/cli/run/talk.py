"""Message after message from standard input, until it ends.

Rules: an interrupt stops the turn, and at the prompt the command. What a server
refuses once doesn't end the conversation.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from ...errors import EngineError, RenderError
from .. import exits
from ..ending import complain
from ..output import note
from .task import run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...session import Session
    from .task import Show

PROMPT: Final = "> "


def talk(session: Session, new_show: Callable[[], Show]) -> int:
    """Send each line; each is shown by a fresh ``new_show()``."""
    for text in _messages():
        try:
            run_task(session, text, new_show())
        except KeyboardInterrupt:
            note("\n")
            complain("atem-run", "stopped; what was finished is remembered")
        except (EngineError, RenderError) as error:
            complain("atem-run", str(error))
    return exits.DONE


def _messages() -> Iterator[str]:
    """The lines that have something in them."""
    read = _edited if _at_a_terminal() else _piped
    while (text := read()) is not None:
        if text.strip():
            yield text


def _at_a_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _edited() -> str | None:
    with suppress(ImportError):
        import readline  # noqa: F401 - input() uses it for the keys
    assert isinstance(sys.stdin, TextIOWrapper), "a terminal"
    sys.stdin.reconfigure(errors="surrogateescape")  # any byte can be typed
    try:
        return as_text(input(PROMPT))
    except EOFError:
        note("\n")
        return None


def _piped() -> str | None:
    if sys.stdin is None:
        raise exits.Failure("standard input is closed; say -p PROMPT")
    line = sys.stdin.buffer.readline()
    return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


def as_text(text: str) -> str:
    """``text`` of a shell without the bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
