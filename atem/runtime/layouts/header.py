"""The header of a safetensors file: what it holds and where, checked before anything is allocated.

Rules: the format's own (length, JSON, dtypes, offsets that cover the data
exactly once), read strictly (model.md 7); NumPy's reader of the format knows no
bfloat16 and no 8-bit floats. A file that lies is UnsafeCheckpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigError, UnsafeCheckpoint
from ..gate import parse_json
from ..quoting import show

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable
    from pathlib import Path

MAX_HEADER: Final = 16 * 1024 * 1024
"""Bytes of a header: many times what any checkpoint needs, as JSON grows thirtyfold in memory."""

MAX_RANK: Final = 8
"""Axes of a tensor; text and vision weights have at most 5."""

BITS: Final = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16, "F32": 32, "F64": 64,
}  # fmt: skip
"""Dtype -> bits of a value. A dtype that is not here is refused."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a file; ``start`` and ``stop`` are offsets in bytes from the file's begin."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header(data: bytes | mmap.mmap, path: Path) -> list[Entry]:
    """The tensors of the safetensors file ``data``, in the order of their data.

    Raises UnsafeCheckpoint that names ``path`` for any header the format forbids.
    """
    size, length = len(data), int.from_bytes(data[:8], "little")
    if size < 8 or length > min(MAX_HEADER, size - 8):
        raise UnsafeCheckpoint(
            f"{path}: a header of {length} bytes in a file of {size} (at most {MAX_HEADER}):"
            " the file is cut, a pointer of Git LFS, or no safetensors file"
        )
    try:
        header = parse_json(data[8 : 8 + length], f"{path}: the header")
    except ConfigError as error:
        raise UnsafeCheckpoint(str(error)) from None
    if not isinstance(header, dict):
        raise UnsafeCheckpoint(f"{path}: the header is not a JSON object")
    header.pop("__metadata__", None)
    entries = [_entry(path, name, fields, 8 + length) for name, fields in header.items()]
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    _check_cover(path, entries, 8 + length, size)
    return entries


def _entry(path: Path, name: str, fields: Any, base: int) -> Entry:
    where = f"{path}: tensor {show(name)}"
    if not isinstance(fields, dict) or set(fields) != {"dtype", "shape", "data_offsets"}:
        raise UnsafeCheckpoint(f"{where} is not described by dtype, shape and data_offsets")
    if not name or not name.isprintable():
        raise UnsafeCheckpoint(f"{where} has no printable name")
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise UnsafeCheckpoint(f"{where} has the unknown dtype {show(dtype)}")
    if not _are_counts(shape, range(MAX_RANK + 1)):
        raise UnsafeCheckpoint(f"{where} has the impossible shape {show(shape)}")
    if not _are_counts(offsets, (2,)) or offsets[0] > offsets[1]:
        raise UnsafeCheckpoint(f"{where} has the impossible offsets {show(offsets)}")
    start, stop = offsets
    if prod(shape) * BITS[dtype] != (stop - start) * 8:
        raise UnsafeCheckpoint(f"{where}: {dtype} of shape {shape} is not {stop - start} bytes")
    return Entry(name, dtype, tuple(shape), base + start, base + stop)


def _are_counts(values: Any, lengths: Iterable[int]) -> bool:
    """Whether ``values`` is a list of one of these lengths of integers from 0 to 2^63 - 1."""
    if not isinstance(values, list) or len(values) not in lengths:
        return False
    return all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _check_cover(path: Path, entries: list[Entry], start: int, stop: int) -> None:
    """The data must be covered exactly once: no overlap, no hole, nothing past the end."""
    for entry in entries:
        if entry.start != start:
            kind = "overlaps the tensor before it" if entry.start < start else "follows a hole"
            raise UnsafeCheckpoint(f"{path}: tensor {show(entry.name)} {kind}")
        start = entry.stop
    if start != stop:
        raise UnsafeCheckpoint(
            f"{path}: the tensors end at byte {start} and the file at {stop}: it is cut or padded"
        )
