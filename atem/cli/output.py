"""Output as bytes, at once, in UTF-8 whatever the locale says.

Rules: what a command prints goes through :func:`write`, what it says to a
person beside that through :func:`note`. Both write to the file descriptor: a
stream object of Python's may buffer, may write a part (PYTHONUNBUFFERED), and
complains when the interpreter ends.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress

from .exits import Failure, OutputUnread


def write(data: bytes) -> None:
    """Write all of it. Raises OutputUnread if nobody reads, Failure if it can't be written."""
    if sys.stdout is None:
        raise Failure("standard output is closed")
    try:
        _write_all(sys.stdout.fileno(), data)
    except BrokenPipeError as error:
        raise OutputUnread from error
    except OSError as error:
        raise Failure(f"standard output: {error.strerror or error}") from error


def note(text: str) -> None:
    """Write ``text`` to standard error; nothing that is not wanted there stops the work."""
    if sys.stderr is None:
        return
    with suppress(OSError):  # closed, or on a full disk: there is nowhere to say so
        sys.stderr.flush()
        data = text.encode(sys.stderr.encoding, "backslashreplace")
        _write_all(sys.stderr.fileno(), data)


def is_terminal() -> bool:
    """Whether a person sees the output."""
    return sys.stdout is not None and sys.stdout.isatty()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # whoever shares the pipe set it so
            select.select([], [descriptor], [])
