"""A folder of safetensors files as a source: each file memory-mapped, each tensor found once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...errors import LayoutError
from .. import gate
from ..quoting import show, some
from .header import read_header
from .mapped import Mapped
from .shards import INDEX, shards, unread_notes, weight_files
from .source import Source, side_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from ..checkpoint import SideFiles
    from .source import StoredTensor

PROCESSORS: Final = ("processor_config.json", "preprocessor_config.json")
"""Files that nobody needs and that may name code."""


def open_folder(path: Path) -> Source:
    """The source of a folder of safetensors files; raises CheckpointError of the kind at fault."""
    folder = gate.Folder.open(path)
    config = gate.read_config(folder)
    beside = side_files(folder)
    notes = gate.code_notes(folder, _code_files(folder, config, beside))
    source = Source(path, folder.root, config, beside, {}, notes)
    try:
        index = shards(folder)
        files = weight_files(folder, index)
        source.stored = _stored(files.values(), source.on_close)
        _check_index(folder, index or {}, source.stored)
    except BaseException:
        source.close()
        raise
    notes += unread_notes(folder, files)
    return source


def _code_files(
    folder: gate.Folder, config: dict[str, Any], beside: SideFiles
) -> dict[str, Mapping[str, Any]]:
    return {
        "config.json": config,
        "tokenizer_config.json": beside.tokenizer_config,
        "generation_config.json": beside.generation_config,
    } | {name: folder.json(name) or {} for name in PROCESSORS}


def _stored(files: Iterable[Path], on_close: list[Callable[[], None]]) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for path in files:
        file = Mapped(path)
        on_close.append(file.close)
        for tensor in tensors_of(file):
            if tensor.name in found:
                other = found[tensor.name].file.name
                raise LayoutError(f"{show(tensor.name)} is in two shards, {other} and {path.name}")
            found[tensor.name] = tensor
    return found


def tensors_of(file: Mapped) -> Iterator[StoredTensor]:
    """The tensors of a safetensors file, its header checked."""
    for entry in read_header(file.data, file.path):
        size = entry.stop - entry.start
        yield file.tensor(entry.name, entry.dtype, entry.shape, entry.start, size)


def _check_index(
    folder: gate.Folder, index: Mapping[str, str], found: Mapping[str, StoredTensor]
) -> None:
    absent = [name for name in index if name not in found]
    if absent:
        raise LayoutError(
            f"{folder.root / INDEX} lists {len(absent)} tensors that no shard has"
            f" ({some(absent)}): the shards and the index are of different downloads"
        )
