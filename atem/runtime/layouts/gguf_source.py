"""GGUF files as a source: one file, or the numbered parts of one, and what lies beside them.

Rules: as in ``source``; metadata come from the first part. In a folder of many
GGUF files only one may be a model, else the caller has to name it. What lies
beside the file is preferred to what the file has in it (model.md 5.3).
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import LayoutError
from .. import gate
from ..quoting import show, some
from ..schemas.gguf import ARCHITECTURES
from .gguf_file import MAGIC, read_header
from .mapped import Mapped
from .source import Source, side_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .gguf_file import GGUFHeader
    from .source import StoredTensor


_PART: Final = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)")
_MERGE: Final = "keep the parts together under the names they came with, or merge them into one"
_TEMPLATE: Final = "tokenizer.chat_template"


class Part(NamedTuple):
    """A GGUF file, its header read: the whole, or one of the parts of a split one."""

    file: Mapped
    header: GGUFHeader

    @classmethod
    def of(cls, file: Mapped) -> Part:
        """``file`` as a part."""
        return cls(file, read_header(file.data, str(file.path)))

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.file.path

    def tensors(self) -> Iterator[StoredTensor]:
        """Views of the tensors: of values for plain types, of whole rows of bytes for blocks."""
        for entry in self.header.tensors.values():
            at, size = entry.offset, entry.nbytes
            yield self.file.tensor(entry.name, entry.encoding, entry.shape, at, size)


def find_gguf(path: Path) -> tuple[gate.Folder, str] | None:
    """Folder and name of the GGUF file that ``path`` means: itself, or the model in that folder.

    None where it means something else: another file, or a folder that has
    safetensors or no GGUF file. Raises LayoutError as :func:`gguf_in` does.
    """
    if path.is_file():
        return (gate.Folder.open(path.parent), path.name) if _is_gguf(path) else None
    folder = gate.Folder.open(path)
    if any(name.endswith(".safetensors") for name in folder.names()):
        return None
    name = gguf_in(folder)
    return None if name is None else (folder, name)


def _is_gguf(path: Path) -> bool:
    if path.suffix.lower() == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def gguf_in(folder: gate.Folder) -> str | None:
    """The name of the GGUF model in ``folder`` (of its first part), None without any GGUF file.

    Raises LayoutError when it has several and not exactly one of them is of this model.
    """
    found = [name for name in folder.names() if name.lower().endswith(".gguf")]
    names = list(dict.fromkeys(_parts_of(name)[0] for name in found))
    if len(names) < 2:
        return names[0] if names else None
    kinds = {name: _architecture(folder, name) for name in names}
    models = [name for name in names if kinds[name] in ARCHITECTURES]
    if len(models) == 1:
        return models[0]
    told = [f"{name} ({show(kinds[name])})" for name in (models or names)]
    raise LayoutError(
        f"{folder.root} has {len(names)} GGUF files, {len(models)} of this model: {some(told)};"
        " give the path of the file to open"
    )


def open_gguf(folder: gate.Folder, name: str, path: Path) -> Source:
    """The source of the file ``name`` in ``folder``; ``path`` is what the caller gave.

    ``name`` may be any of the parts of a split file. Raises LayoutError for a part
    that is missing or of another file, and what ``read_header`` raises.
    """
    config = folder.json("config.json") or {}
    notes = gate.code_notes(folder, {"config.json": config})
    source = Source(path, folder.root, config, side_files(folder), {}, notes)
    try:
        parts = [_part(folder, part, source) for part in _parts_of(name)]
        metadata = parts[0].header.metadata
        _check_parts(parts)
        source.stored = _merged(parts)
        source.files = replace(
            source.files,
            gguf=metadata,
            chat_template=source.files.chat_template or _template(metadata, source.notes),
        )
    except BaseException:
        source.close()
        raise
    return source


def _parts_of(name: str) -> Sequence[str]:
    """The names of all parts of the file of which ``name`` is one; itself if it is whole."""
    match = _PART.fullmatch(name)
    if match is None:
        return (name,)
    stem, _, count, end = match.groups()
    return [f"{stem}-{part:05d}-of-{count}{end}" for part in range(1, int(count) + 1)] or (name,)


def _part(folder: gate.Folder, name: str, source: Source) -> Part:
    path = folder.file(name)
    if path is None:
        raise LayoutError(f"{folder.root} has no file {show(name)}; {_MERGE}")
    file = Mapped(path)
    source.on_close.append(file.close)
    return Part.of(file)


def _architecture(folder: gate.Folder, name: str) -> Any:
    path = folder.file(name)
    if path is None:  # of a split file, whose first part is missing
        return None
    with closing(Mapped(path)) as file:
        return Part.of(file).header.metadata.get("general.architecture")


def _template(metadata: Mapping[str, Any], notes: list[str]) -> str | None:
    template = metadata.get(_TEMPLATE)
    if isinstance(template, str) or template is None:
        return template
    notes.append(f"{_TEMPLATE} is no text: it is ignored")
    return None


def _check_parts(parts: Sequence[Part]) -> None:
    """Every part must say that it is the one that its name says (``split.no``, ``split.count``)."""
    if not parts[0].header.metadata:
        raise LayoutError(f"{parts[0].path} has no metadata, which say what a GGUF file holds")
    for number, part in enumerate(parts):
        metadata = part.header.metadata
        place = metadata.get("split.no", 0), metadata.get("split.count", 1) or 1
        if place != (number, len(parts)):
            raise LayoutError(
                f"{part.path} calls itself part {show(place[0])} of {show(place[1])} and stands as "
                f"part {number} of {len(parts)}, counted from 0; {_MERGE} "
                "(llama-gguf-split --merge FIRST_PART OUTPUT)"
            )


def _merged(parts: Sequence[Part]) -> dict[str, StoredTensor]:
    stored: dict[str, StoredTensor] = {}
    for part in parts:
        for tensor in part.tensors():
            if tensor.name in stored:
                other = stored[tensor.name].file.name
                raise LayoutError(
                    f"{show(tensor.name)} is in two parts, {other} and {part.path.name}"
                )
            stored[tensor.name] = tensor
    total = parts[0].header.metadata.get("split.tensors.count", len(stored))
    if total != len(stored):
        raise LayoutError(
            f"{parts[0].path} announces {show(total)} tensors and {len(stored)} are there; {_MERGE}"
        )
    return stored
