"""Which files of a folder hold the weights, and whether all of them are there.

Rules: the index decides where there is one. Files that could be read in two
ways are refused, files that are not read are noted (model.md 4.8, 7).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import LayoutError, UnsafeCheckpoint
from ..gate import is_plain_name
from ..quoting import show, some

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..gate import Folder

PICKLES: Final = frozenset({".bin", ".pt", ".pth", ".ckpt"})
"""Suffixes of weight files that run code when they are read."""

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"


def weight_files(folder: Folder, index: Mapping[str, str] | None) -> dict[str, Path]:
    """File name -> resolved path of every safetensors file to read, in order.

    The shards of the ``index`` when there is one, else ``model.safetensors``, else
    the only file, else one complete numbered set. Raises LayoutError when these
    disagree or a shard is missing, UnsafeCheckpoint for pickles alone.
    """
    names = folder.names()
    found = [name for name in names if name.endswith(".safetensors")]
    if index is not None:
        return _indexed(folder, found, index)
    if not found:
        raise _no_weights(folder, names)
    if SINGLE in found:
        found = [SINGLE]
    elif len(found) > 1 or "-of-" in found[0]:
        _check_numbered(folder, found)
    return _existing(folder, found)


def shards(folder: Folder) -> dict[str, str] | None:
    """Tensor name -> shard, from the index; None without one."""
    index = folder.json(INDEX)
    if index is None:
        return None
    entries = index.get("weight_map")
    if not isinstance(entries, dict) or not entries:
        raise LayoutError(f"{folder.root / INDEX} has no weight_map")
    for key, shard in entries.items():
        if not is_plain_name(shard):
            raise UnsafeCheckpoint(
                f"{folder.root / INDEX}: the shard {show(shard)} of {show(key)}"
                " is not a plain file name"
            )
    return entries


def unread_notes(folder: Folder, read: Iterable[str]) -> list[str]:
    """A note on the weight files of the folder that are not ``read``, if there are any."""
    known = frozenset(read)
    unread = [name for name in folder.names() if name not in known and is_weights(name)]
    if not unread:
        return []
    return [f"{len(unread)} weight files are not read: {some(unread)}"]


def is_weights(name: str) -> bool:
    """Whether a file of this name holds weights, of any kind."""
    return Path(name).suffix in PICKLES | {".safetensors", ".gguf"}


def _indexed(folder: Folder, found: list[str], index: Mapping[str, str]) -> dict[str, Path]:
    named = sorted(set(index.values()))
    if SINGLE in found and SINGLE not in named:
        raise LayoutError(f"{folder.root} has {SINGLE} and an index without it: remove one of both")
    return _existing(folder, named)


def _existing(folder: Folder, names: Iterable[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name in names:
        path = folder.file(name)
        if path is None:
            raise LayoutError(
                f"{folder.root}: the shard {show(name)} is missing: download it again"
            )
        files[name] = path
    return files


def _check_numbered(folder: Folder, found: list[str]) -> None:
    """Several files without an index are one model only as a complete numbered set."""
    count = len(found)
    stem = found[0].rpartition("-00001-of-")[0]
    if found != [f"{stem}-{n + 1:05d}-of-{count:05d}.safetensors" for n in range(count)]:
        raise LayoutError(
            f"{folder.root} has no {INDEX}, and its safetensors files ({some(found)}) are"
            " no complete numbered set: download what is missing, or move the rest away"
        )


def _no_weights(folder: Folder, names: list[str]) -> UnsafeCheckpoint | LayoutError:
    pickles = [name for name in names if Path(name).suffix in PICKLES]
    if not pickles:
        return LayoutError(f"{folder.root} has no weights: no file ends in .safetensors or .gguf")
    return UnsafeCheckpoint(
        f"{folder.root} has weights only as {some(pickles)}: such files run code when they"
        " are read. Only safetensors and GGUF are read: convert the checkpoint where you trust it"
    )
