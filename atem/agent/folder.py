"""One folder, and nothing outside it: paths that a model wrote, opened without ever leaving.

Rules: a path is taken apart here and walked name by name, each opened relative
to the folder before it and never through a link, so that nothing that changes
meanwhile can lead out. Only regular files are opened. Errors are Python's own
types with one sentence each.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from ..errors import OptionError
from ..tools.excerpt import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_QUOTED: Final = 200
"""Characters of a path in an error."""

MAX_PATH: Final = 4095
MAX_NAME: Final = 255
"""Bytes: what systems take at once, so that other programs reach whatever is made here."""

KEPT_OFF: Final = (".git", ".hg", ".jj")
"""Folders that are not written to: a shell's prompt that shows a status runs what they name."""

REPOSITORY: Final = ("head", "objects", "refs")
"""What makes a folder a repository to git, whatever its name; its settings name programs too."""

NEAREST: Final = 3
COMPARED: Final = 500
"""Names of a folder that are compared with one that is not there."""

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# Without O_NONBLOCK, opening a FIFO that took a file's place would wait for ever.
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


class Folder:
    """The folder at ``path``, which may itself be reached through links.

    Raises OptionError if there is none that can be listed, or on a system
    without the calls that open a name relative to a folder.
    """

    def __init__(self, path: str | Path) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise OptionError("the file tools need a system that opens names relative to a folder")
        if path == "":  # pathlib takes it for the current folder
            raise OptionError("the folder has no name; . is the current one")
        try:
            self.path: Final = Path(path).resolve()
            os.close(os.open(self.path, _FOLDER))
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
            why = getattr(error, "strerror", None) or error
            raise OptionError(f"{path} is not a folder that can be opened: {why}") from error

    def entries(self, path: str) -> list[tuple[str, os.stat_result]]:
        """The names in a folder with what each is, sorted; a link counts as itself."""
        with _in_sentences(path), self._opened(_names(path)) as folder:
            return _entries(folder)

    def read(self, path: str, limit: int) -> tuple[bytes, int]:
        """The first ``limit`` bytes of a regular file, and its size: more if they are not all."""
        *parents, name = _names(path) or ["."]
        with _in_sentences(path), self._opened(parents) as folder:
            _require_file(_status(folder, parents, name), path)
            return _head(os.open(name, _READ, dir_fd=folder), path, limit)

    def write(self, path: str, data: bytes) -> None:
        """Make ``data`` the content of a file, all at once; folders that lack are made."""
        *parents, name = _names(path) or ["."]
        if path.endswith("/"):
            raise IsADirectoryError(f"{quoted(path)} is the name of a folder")
        if kept := {each.casefold() for each in [*parents, name]} & {*KEPT_OFF}:
            raise PermissionError(f"{quoted(path)} is in {min(kept)}, which is not written to")
        if name.casefold() == REPOSITORY[0]:
            raise PermissionError(f"{quoted(path)} would make a repository of its folder")
        with _in_sentences(path):
            self._keep_off_repositories(parents, path)
        with _in_sentences(path), self._opened(parents, make=True) as folder:
            _replace(folder, name, data, _replaceable(folder, name, path))

    def _keep_off_repositories(self, parents: list[str], path: str) -> None:
        """Raise PermissionError if ``parents`` lead into a repository without a name of its own."""
        for depth in range(len(parents) + 1):
            try:
                with self._opened(parents[:depth]) as folder:
                    names = {name.casefold() for name, _ in _entries(folder)}
            except FileNotFoundError:
                return
            if names.issuperset(REPOSITORY):
                raise PermissionError(f"{quoted(path)} is in a repository, which is not written to")

    @contextmanager
    def _opened(self, names: list[str], *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder that ``names`` lead to."""
        here = os.open(self.path, _FOLDER)
        try:
            for depth, name in enumerate(names):
                here = _step(here, names[:depth], name, make=make)
            yield here
        finally:
            os.close(here)


@contextmanager
def _in_sentences(path: str) -> Iterator[None]:
    """Say of what the system refuses which path it was, without a number."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it is one of ours
            raise
        raise type(error)(f"{quoted(path)}: {error.strerror}") from error


def _names(path: str) -> list[str]:
    """The names in a relative path. Raises OSError or ValueError for one that can't be used."""
    if "\0" in path or any("\ud800" <= char <= "\udfff" for char in path):
        raise ValueError(f"{quoted(path)} has a character that no path can have")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if len(path.encode()) > MAX_PATH or any(len(name.encode()) > MAX_NAME for name in names):
        raise OSError(f"{quoted(path)}: File name too long")
    if path.startswith("/") or ".." in names:
        raise PermissionError(f"{quoted(path)} leads out of the folder; give a path inside it")
    return names


def quoted(path: str) -> str:
    """``path`` for a sentence: in quotes, on one line, with bounds."""
    return shorten(repr(path), MAX_QUOTED)


def _step(here: int, parents: list[str], name: str, *, make: bool) -> int:
    """The descriptor of the folder ``name`` in ``here``, which is closed if that works."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=here)
    status = _status(here, parents, name)
    path = "/".join([*parents, name])
    if stat.S_ISLNK(status.st_mode):
        raise PermissionError(f"{quoted(path)} is a link, and links are not followed")
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{quoted(path)} is not a folder")
    opened = os.open(name, _FOLDER, dir_fd=here)  # refuses a link that took its place
    os.close(here)
    return opened


def _status(folder: int, parents: list[str], name: str) -> os.stat_result:
    """What ``name`` is. Raises FileNotFoundError with the names nearest to it."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        path = quoted("/".join([*parents, name]))
        near = ", ".join("/".join([*parents, each]) for each in _nearest(folder, name))
        there = f"there are {near}" if near else "the folder is empty"
        raise FileNotFoundError(f"there is no {path}; {there}") from None


def _require_file(status: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise PermissionError(f"{quoted(path)} is a link, and links are not followed")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{quoted(path)} is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise PermissionError(f"{quoted(path)} is not a regular file")


def _head(descriptor: int, path: str, limit: int) -> tuple[bytes, int]:
    """The first bytes of what was opened, if it is a regular file after all, and its size."""
    try:
        status = os.fstat(descriptor)
        _require_file(status, path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # It may have grown, and some files say that they have 0; None is "not yet".
            data = file.read(limit + 1) or b""
            return data[:limit], max(status.st_size, len(data))
    finally:
        os.close(descriptor)


def _entries(folder: int) -> list[tuple[str, os.stat_result]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # it went meanwhile
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return sorted(found)


def shown(name: str, status: os.stat_result) -> str:
    """A name for a list: on one line, with "/" behind a folder's."""
    text = name if name.isprintable() else repr(name)
    return f"{text}/" if stat.S_ISDIR(status.st_mode) else text


def _nearest(folder: int, name: str) -> list[str]:
    entries = islice(_entries(folder), COMPARED)
    names = [shown(*entry) for entry in entries]
    return sorted(names, key=lambda each: (-_likeness(each, name), each))[:NEAREST]


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def _replaceable(folder: int, name: str, path: str) -> os.stat_result | None:
    """What ``name`` is, if it may be written over; None if there is nothing."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_file(status, path)
    # Renaming would not ask.
    if not status.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(f"{quoted(path)} is write-protected")
    return status


def _replace(folder: int, name: str, data: bytes, old: os.stat_result | None) -> None:
    """Write a new file and put it in the place of ``name``; renaming follows no link."""
    temporary = f".{token_hex(8)}.tmp"
    descriptor = os.open(temporary, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:  # closes it
            if old is not None:
                with suppress(PermissionError):  # only root gives a file away
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)
            file.write(data)
            file.flush()
            os.fsync(descriptor)  # else the new name may outlive a crash, and the content not
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
