"""A checkpoint's files behind the gate: configuration, side files, and stored tensors by name.

Rules: opening reads headers and small JSON files only. A stored tensor is a
view of a memory-mapped file: it costs nothing until its values are looked at.
What stored names mean is a layout's business.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from ...errors import CheckpointError, LayoutError
from .. import gate
from ..checkpoint import SideFiles
from .header import read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from .header import Entry

NUMPY: Final[dict[str, Any]] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64,
}  # fmt: skip
"""Stored dtype -> NumPy's. "F4" is absent: two values a byte, given as bytes."""

JSON_FILES: Final = ("tokenizer_config.json", "generation_config.json")
LOOKED_AT_FOR_CODE: Final = (*JSON_FILES, "processor_config.json", "preprocessor_config.json")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it lies in a file.

    ``dtype`` is the format's own word ("BF16", "U32", "Q4_K"); ``shape`` is in
    NumPy's order. ``array()`` maps it: read-only, maybe unaligned; "F4" and the
    block types of GGUF come as bytes, whole rows of them.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    file: Path
    array: Callable[[], NDArray[Any]]


@dataclass
class Source:
    """What lies on disk. ``config`` is the raw ``config.json``, {} for a GGUF file without one."""

    path: Path
    """As the caller named it."""
    root: Path
    """The resolved folder."""
    config: Mapping[str, Any]
    files: SideFiles
    stored: Mapping[str, StoredTensor]
    notes: list[str] = field(default_factory=list)
    on_close: list[Callable[[], None]] = field(default_factory=list)

    @cached_property
    def modules(self) -> Mapping[str, Mapping[str, StoredTensor]]:
        """Module -> last part of the stored name -> tensor: ``X`` -> ``weight``, ``scales``, ..."""
        found: dict[str, dict[str, StoredTensor]] = {}
        for name, tensor in self.stored.items():
            module, _, part = name.rpartition(".")
            found.setdefault(module, {})[part] = tensor
        return found

    def json(self, name: str) -> dict[str, Any] | None:
        """A further JSON object beside the weights (``hf_quant_config.json``), or None."""
        return gate.Folder(self.root).json(name)

    def close(self) -> None:
        """Give the files back. May be called twice."""
        while self.on_close:
            self.on_close.pop()()


def open_source(path: Path) -> Source:
    """The source of a folder, or of a GGUF file; raises CheckpointError."""
    from .gguf_source import find_gguf, open_gguf

    found = find_gguf(path)
    if found is not None:
        return open_gguf(*found, path)
    if path.is_file():
        raise LayoutError(f"{path} is a file and no GGUF: name its folder")
    return open_folder(path)


def open_folder(path: Path) -> Source:
    """The source of a folder of safetensors files; raises CheckpointError of the kind at fault."""
    folder = gate.Folder.open(path)
    config = gate.read_config(folder)
    notes = gate.code_notes(folder, _code_files(folder, config))
    source = Source(path, folder.root, config, side_files(folder), {}, notes)
    try:
        files = gate.weight_files(folder)
        source.stored = _stored(folder, files.values(), source.on_close)
    except BaseException:
        source.close()
        raise
    notes += gate.unread_notes(folder, files)
    return source


def side_files(folder: gate.Folder) -> SideFiles:
    """The files beside the weights, as far as they are there."""
    tokenizer_config, generation_config = (folder.json(name) or {} for name in JSON_FILES)
    template = folder.file("chat_template.jinja")
    return SideFiles(
        tokenizer=folder.file("tokenizer.json"),
        tokenizer_config=tokenizer_config,
        generation_config=generation_config,
        chat_template=(
            _template_in(tokenizer_config) if template is None else gate.read_text(template)
        ),
    )


def _template_in(tokenizer_config: Mapping[str, Any]) -> str | None:
    """The template inside ``tokenizer_config.json``: a string, or a list with a "default" one."""
    found = tokenizer_config.get("chat_template")
    if isinstance(found, list):
        default = (t for t in found if isinstance(t, dict) and t.get("name") == "default")
        found = next(default, {}).get("template")
    return found if isinstance(found, str) else None


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
    absent = [name for name in gate.shards(folder) or () if name not in found]
    if absent:
        raise LayoutError(
            f"{folder.root / gate.INDEX} lists {len(absent)} tensors that no shard has"
            f" ({', '.join(absent[:4])}): the shards and the index are of different downloads"
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
