"""Tools that list, read, search and write the text files of one folder.

Rules: what may be opened is :mod:`~atem.agent.folder`'s business. Results are
bounded, and say so where something was left out. The declarations are the same
text every time, because a model may have been trained on exactly them.
"""

from __future__ import annotations

import stat
from codecs import getincrementaldecoder
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from ..tools import Tool
from ..tools.excerpt import COUNTED, shorten
from .folder import Folder, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_READ: Final = 256 * 1024
"""Bytes of a file that are read."""

MAX_WRITTEN: Final = 1024 * 1024
"""Bytes of a file that is written."""

MAX_NAMES: Final = 1000
"""Names that a list shows."""

MAX_FOUND: Final = 200
"""Lines that a search shows."""

MAX_LINE: Final = 300
"""Characters of a line that a search shows."""

MAX_SEARCHED: Final = 5000
"""Files that a search reads."""

MAX_DEPTH: Final = 32
"""Folders inside one another that a search enters."""

LONG: Final = "[of {} long files only the first {} bytes were searched]"
UNREAD: Final = "[{} files or folders could not be searched]"


def file_tools(folder: str | Path, *, allow_write: bool = False) -> list[Tool]:
    """list_files, read_file and search in ``folder``, and write_file with ``allow_write``.

    Raises OptionError if there is no such folder.
    """
    files = _Files(Folder(folder))
    functions: list[Callable[..., str]] = [
        files.list_files,
        files.read_file,
        files.search,
        files.write_file,
    ]
    kept = functions if allow_write else functions[:-1]
    return [Tool.from_function(function) for function in kept]


class _Files:
    """The tools of one folder, as bound methods."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def list_files(self, path: str = ".") -> str:
        """List the files in a folder."""
        entries = self._folder.entries(path)
        lines = [shown(*entry) for entry in entries[:MAX_NAMES]]
        if left := len(entries) - len(lines):
            lines.append(f"[{left} more names are left out]")
        return "\n".join(lines) or "(empty)"

    def read_file(self, path: str) -> str:
        """Read a text file."""
        data, size = self._folder.read(path, MAX_READ)
        text = _decoded(data, whole=size <= len(data))
        if text is None:
            raise ValueError(f"{quoted(path)} is not a text file")
        if size <= len(data):
            return text
        return f"{text}\n[only the first {len(data)} of {size} bytes are shown]"

    def search(self, text: str) -> str:
        """Find lines that contain a text."""
        if not text or "\n" in text:
            raise ValueError("search for a text that can stand in one line")
        left: Counter[str] = Counter()
        paths = list(islice(self._paths("", 0, left), MAX_SEARCHED + 1))
        found = self._matches(sorted(paths[:MAX_SEARCHED]), text, left)
        lines = list(islice(found, MAX_FOUND)) or ["(no match)"]
        if next(found, None) is not None:
            lines.append(f"[more than {MAX_FOUND} lines contain it; the rest is left out]")
        if len(paths) > MAX_SEARCHED:
            lines.append(f"[only {MAX_SEARCHED} files were searched]")
        return "\n".join([*lines, *(note.format(n, MAX_READ) for note, n in left.items())])

    def write_file(self, path: str, content: str) -> str:
        """Write a text file."""
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise ValueError("the content has half a character, which no file can hold") from None
        if len(data) > MAX_WRITTEN:
            raise ValueError(f"the content has {len(data)} bytes, and {MAX_WRITTEN} are allowed")
        self._folder.write(path, data)
        return f"Wrote {len(data)} bytes to {path}."

    def _paths(self, folder: str, depth: int, left: Counter[str]) -> Iterator[str]:
        """The regular files below ``folder``, but for what begins with a dot."""
        if depth > MAX_DEPTH:
            raise OSError("too deep")
        for name, status in self._folder.entries(folder):
            if name.startswith("."):
                continue
            if not name.isprintable():
                left[UNREAD] += 1
            elif stat.S_ISREG(status.st_mode):
                yield folder + name
            elif stat.S_ISDIR(status.st_mode):
                try:
                    yield from self._paths(f"{folder}{name}/", depth + 1, left)
                except OSError:  # it is gone, too deep, or not ours to read
                    left[UNREAD] += 1

    def _matches(self, paths: list[str], text: str, left: Counter[str]) -> Iterator[str]:
        for path in paths:
            try:
                data, size = self._folder.read(path, MAX_READ)
            except OSError:
                left[UNREAD] += 1
                continue
            whole = size <= len(data)
            content = _decoded(data, whole=whole)
            if content is not None and not whole:
                left[LONG] += 1
            for number, line in enumerate((content or "").split("\n"), 1):
                if text in line:
                    yield f"{path}:{number}: {shorten(line.rstrip(chr(13)), MAX_LINE, gap=COUNTED)}"


def _decoded(data: bytes, *, whole: bool) -> str | None:
    """The text in ``data``, or None if it is none; unless ``whole`` it may end in half a one."""
    if b"\0" in data:
        return None
    try:
        return getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return None
