"""A folder of safetensors files as a source: each file memory-mapped, each tensor found once."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import CheckpointError, LayoutError
from .. import gate
from .header import read_header
from .shards import INDEX, shards, unread_notes, weight_files
from .source import JSON_FILES, NUMPY, Source, StoredTensor, side_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from .header import Entry

LOOKED_AT_FOR_CODE: Final = (*JSON_FILES, "processor_config.json", "preprocessor_config.json")


def open_folder(path: Path) -> Source:
    """The source of a folder of safetensors files; raises CheckpointError of the kind at fault."""
    folder = gate.Folder.open(path)
    config = gate.read_config(folder)
    notes = gate.code_notes(folder, _code_files(folder, config))
    source = Source(path, folder.root, config, side_files(folder), {}, notes)
    try:
        files = weight_files(folder)
        source.stored = _stored(folder, files.values(), source.on_close)
    except BaseException:
        source.close()
        raise
    notes += unread_notes(folder, files)
    return source


def _code_files(folder: gate.Folder, config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    others = {name: folder.json(name) or {} for name in LOOKED_AT_FOR_CODE}
    return {"config.json": config, **others}


def _stored(
    folder: gate.Folder, files: Iterable[Path], on_close: list[Callable[[], None]]
) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for path in files:
        mapped = MappedFile(path)
        on_close.append(mapped.close)
        for tensor in mapped.tensors:
            if tensor.name in found:
                other = found[tensor.name].file.name
                raise LayoutError(f"{tensor.name!r} is in two shards, {other} and {path.name}")
            found[tensor.name] = tensor
    _check_index(folder, found)
    return found


def _check_index(folder: gate.Folder, found: Mapping[str, StoredTensor]) -> None:
    absent = [name for name in shards(folder) or () if name not in found]
    if absent:
        raise LayoutError(
            f"{folder.root / INDEX} lists {len(absent)} tensors that no shard has"
            f" ({gate.listed(absent)}): the shards and the index are of different downloads"
        )


class MappedFile:
    """A safetensors file, memory-mapped; ``tensors`` are views of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            entries = read_header(file, path, size)
            self._map: mmap.mmap | None = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        self.tensors = tuple(self._tensors(entries))

    def _tensors(self, entries: Iterable[Entry]) -> Iterable[StoredTensor]:
        for entry in entries:
            view = partial(self._view, entry)
            size = entry.stop - entry.start
            yield StoredTensor(entry.name, entry.dtype, entry.shape, size, self.path, view)

    def _view(self, entry: Entry) -> NDArray[Any]:
        if self._map is None:
            raise CheckpointError(f"{self.path} is closed: tensor {entry.name!r} can't be read")
        kind = np.dtype(NUMPY.get(entry.dtype, np.uint8))
        shape = entry.shape if entry.dtype in NUMPY else (*entry.shape[:-1], entry.shape[-1] // 2)
        count = (entry.stop - entry.start) // kind.itemsize
        if count == 0:
            return np.empty(shape, kind)
        return np.frombuffer(self._map, kind, count, entry.start).reshape(shape)

    def close(self) -> None:
        """Unmap the file; a view that is still held keeps its pages until it is dropped."""
        mapped, self._map = self._map, None
        with suppress(BufferError):
            if mapped is not None:
                mapped.close()
