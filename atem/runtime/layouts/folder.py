"""A folder of safetensors files as a source: each file memory-mapped, each tensor found once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...errors import LayoutError
from .. import gate
from ..quoting import show, some
from .header import read_header
from .mapped import Mapped
from .shards import INDEX, shards, unread_notes, weight_files
from .source import JSON_FILES, Source, side_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from .source import StoredTensor

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
        file = Mapped(path)
        on_close.append(file.close)
        for tensor in tensors_of(file):
            if tensor.name in found:
                other = found[tensor.name].file.name
                raise LayoutError(f"{show(tensor.name)} is in two shards, {other} and {path.name}")
            found[tensor.name] = tensor
    _check_index(folder, found)
    return found


def tensors_of(file: Mapped) -> Iterator[StoredTensor]:
    """The tensors of a safetensors file, its header checked."""
    for entry in read_header(file.data, file.path):
        size = entry.stop - entry.start
        yield file.tensor(entry.name, entry.dtype, entry.shape, entry.start, size)


def _check_index(folder: gate.Folder, found: Mapping[str, StoredTensor]) -> None:
    absent = [name for name in shards(folder) or () if name not in found]
    if absent:
        raise LayoutError(
            f"{folder.root / INDEX} lists {len(absent)} tensors that no shard has"
            f" ({some(absent)}): the shards and the index are of different downloads"
        )
