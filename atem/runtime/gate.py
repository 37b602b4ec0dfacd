"""The gate: what a checkpoint's folder may make us read, decided before anything reads it.

Rules: a folder is resolved once, and everything that is loaded comes from that
resolved folder (model.md 7). A name must be a plain file name; what it leads
to must be a regular file inside the folder. Code that a checkpoint names is
never executed, whatever it is named by. Nothing is fetched.
"""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from math import isfinite
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConfigError, LayoutError, UnsafeCheckpoint
from .quoting import show

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_NAME: Final = 255
"""Characters of a file's name; file systems have no longer ones."""

MAX_JSON: Final = 16 << 20
"""Bytes of a JSON file beside the weights. The largest real ones list every module: under 2 MiB."""

CODE_KEYS: Final = ("auto_map", "custom_generate")
"""Keys by which transformers is told to import code from the folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A checkpoint's folder behind the gate. ``root`` is resolved: it has no symlinks left."""

    root: Path

    @classmethod
    def open(cls, path: str | Path) -> Folder:
        """The folder at ``path``; raises LayoutError when there is none."""
        try:
            root = Path(path).resolve()
        except (RuntimeError, ValueError) as error:  # a circle of links, a NUL
            raise LayoutError(f"{path!s} can't be followed: {error}") from None
        if not root.is_dir():
            if root.exists():
                raise LayoutError(f"{path} is not a folder: name the one that holds config.json")
            raise LayoutError(
                f"{path} does not exist: name a folder that holds config.json, a .gguf file "
                "or nano (nothing is downloaded); a server's address begins with http:// or https://"
            )
        return cls(root)

    def file(self, name: str) -> Path | None:
        """The resolved regular file ``name``, or None when there is none.

        Raises UnsafeCheckpoint for a name that is no plain file name, and for a
        file that is not regular or lies outside the folder.
        """
        if not is_plain_name(name):
            raise UnsafeCheckpoint(f"{self.root}: {show(name)} is not a plain file name")
        return self._inside(self.root / name)

    def names(self) -> list[str]:
        """Names of everything in the folder, sorted."""
        return sorted(entry.name for entry in self.root.iterdir())

    def json(self, name: str) -> dict[str, Any] | None:
        """The JSON object in the file ``name``, or None when there is no such file."""
        path = self.file(name)
        return None if path is None else read_json_object(path)

    def _inside(self, path: Path) -> Path | None:
        try:
            real = path.resolve(strict=True)
            mode = real.stat().st_mode
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, ValueError) as error:
            raise UnsafeCheckpoint(f"{path} can't be followed: {error}") from None
        if not any(real.is_relative_to(home) for home in self._homes()):
            raise UnsafeCheckpoint(f"{path} leads out of its folder, to {real}: copy the file in")
        if not stat.S_ISREG(mode):
            raise UnsafeCheckpoint(f"{path} is not a regular file")
        return real

    def _homes(self) -> tuple[Path, ...]:
        """Where files may lie: the folder and, in Hugging Face's cache, the blobs of its model.

        The folder may be a snapshot of the cache, or lie in one.
        """
        models = (up.parent for up in self.root.parents if up.name == "snapshots")
        blobs = (model / "blobs" for model in models if model.name.startswith("models--"))
        return (self.root, *blobs)


def is_plain_name(name: object) -> bool:
    """Whether ``name`` can only mean a file of the folder itself, on any system."""
    if not isinstance(name, str) or name in {"", ".", ".."} or len(name) > MAX_NAME:
        return False
    return not any(char in "/\\:\0" for char in name) and name.isprintable()


def parse_json(text: str | bytes, where: object) -> Any:
    """Strict JSON: no NaN, no key twice, no depth or number that Python refuses.

    Raises ConfigError that begins with ``where``.
    """
    try:
        plain = text.decode() if isinstance(text, bytes) else text
        return json.loads(
            plain,
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error!s:.200}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {show(key)} appears twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.40} is too large")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file of at most :data:`MAX_JSON` bytes; raises ConfigError."""
    found = parse_json(_bytes(path), path)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is not a JSON object but {type(found).__name__}")
    return found


def read_text(path: Path) -> str:
    """A text file of at most :data:`MAX_JSON` bytes, UTF-8; raises ConfigError."""
    try:
        return _bytes(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: {error}") from None


def _bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_JSON:
        raise ConfigError(f"{path} has {size} bytes, and such a file has at most {MAX_JSON}")
    return path.read_bytes()


def read_config(folder: Folder) -> dict[str, Any]:
    """``config.json``, which must exist; raises ConfigError."""
    found = folder.json("config.json")
    if found is None:
        raise ConfigError(f"{folder.root} has no config.json: it is not a checkpoint's folder")
    return found


def code_notes(folder: Folder, files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Notes on the code that ``files`` (file name -> content) name: it is ignored, never run.

    Raises UnsafeCheckpoint for a ``model_file`` that is no path into the folder (model.md 7).
    """
    notes = []
    config = files.get("config.json", {})
    if "model_file" in config:
        checked = _model_file(folder, config["model_file"])
        notes.append(f"config.json names {checked!r} as model_file: it is ignored, never executed")
    for name, content in files.items():
        found = [key for key in CODE_KEYS if key in content]
        notes += [f"{name} has {key}: it is ignored, never executed" for key in found]
    return notes


def _model_file(folder: Folder, value: object) -> str:
    where = f"{folder.root / 'config.json'}: model_file {show(value)}"
    if not isinstance(value, str) or not value:
        raise UnsafeCheckpoint(f"{where} is not the name of a file")
    posix, windows = PurePosixPath(value), PureWindowsPath(value)
    if posix.is_absolute() or windows.anchor or ".." in windows.parts or not value.isprintable():
        raise UnsafeCheckpoint(f"{where} is not a plain relative path")
    if folder._inside(folder.root / value) is None:  # noqa: SLF001 (same module)
        raise UnsafeCheckpoint(f"{where} is not in the folder")
    return value
