"""Input as it arrives: a file, a pipe or a terminal, in bytes.

Rules: raw reads of the file descriptor, because a buffered read waits until
its buffer is full and a stream must be shown while it is written.
"""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .exits import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN: Final = "-"
LARGEST: Final = 64 * 1024
"""Bytes of one read: what a pipe holds on Linux."""


def pieces(name: str, *, size: int = LARGEST, delay: float = 0.0) -> Iterator[bytes]:
    """The bytes of the file ``name`` ("-" is standard input), up to ``size`` at once.

    Waits ``delay`` seconds after each. Raises Failure if it can't be read.
    """
    try:
        with _opened(name) as descriptor:
            while data := _read(descriptor, size):
                yield data
                time.sleep(delay)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror or error}") from error


def read(name: str) -> bytes:
    """All of it. Raises Failure if it can't be read."""
    return b"".join(pieces(name))


@contextmanager
def _opened(name: str) -> Iterator[int]:
    if name != STDIN:
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - Path.open says the same
            yield file.fileno()
        return
    # Started with a closed standard input: its number may by now be another file's.
    if sys.stdin is None:
        raise Failure("-: standard input is closed")
    yield sys.stdin.fileno()


def _read(descriptor: int, size: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, size)
        except BlockingIOError:  # whoever shares the pipe set it so
            select.select([descriptor], [], [])
