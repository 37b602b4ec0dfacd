"""The header of a GGUF file, walked and checked before anything is believed.

Rules: ``gguf.GGUFReader`` reads eagerly and trusts every count, length and
offset, which is why this walker exists; the reader is its oracle in the tests.
Only the header is read here: tensors stay where they are in the file. Versions
2 and 3, little endian; the sizes of blocks are those of the package ``gguf``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from ...errors import LayoutError, MissingExtra, TensorError, UnsafeCheckpoint
from ..quoting import show
from .gguf_cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .gguf_cursor import Buffer

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)

_ALIGNMENT: Final = "general.alignment"
_MAX_KEYS: Final = 1 << 16
_MAX_TENSORS: Final = 1 << 16
_MAX_KEY: Final = (1 << 16) - 1
_MAX_NAME: Final = 256
_MAX_DIMS: Final = 4
_KEY_SIZE: Final = 8 + 4 + 1
_ENTRY_SIZE: Final = 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class GGUFTensor:
    """A tensor as the header tells of it.

    ``shape`` is row-major (the file lists it the other way round), ``encoding``
    is a ggml type ("F32", "Q4_K", ...), ``offset`` counts from the file's start.
    """

    name: str
    encoding: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """Metadata (key -> number, bool, text, or list of one of these) and tensors, in file order."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, GGUFTensor]


def read_header(data: Buffer, name: str) -> GGUFHeader:
    """The header of the GGUF file ``data``; ``name`` is the file's in messages.

    Raises LayoutError for what is no GGUF or of a version that is not read,
    TensorError for an unknown type of tensor, UnsafeCheckpoint where a count,
    length, offset or size can't be true, MissingExtra without ``gguf``.
    """
    cursor = Cursor(data, name)
    _check_version(cursor, data, name)
    number = cursor.count(_ENTRY_SIZE, _MAX_TENSORS, "tensors")
    metadata = _metadata(cursor, cursor.count(_KEY_SIZE, _MAX_KEYS, "keys"))
    alignment = _alignment(cursor, metadata)
    entries = [_entry(cursor) for _ in range(number)]
    start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, GGUFTensor] = {}
    for entry in entries:
        if entry.name in tensors:
            cursor.fail(f"tensor {show(entry.name)} stands there twice")
        tensors[entry.name] = entry.placed(start, alignment, len(data), name)
    _check_overlaps(tensors, name)
    return GGUFHeader(metadata, tensors)


def _check_version(cursor: Cursor, data: Buffer, name: str) -> None:
    if data[:4] != MAGIC:
        raise LayoutError(f"{name}: no GGUF file, it begins with {bytes(data[:4])!r}")
    cursor.position = 4
    version = cursor.u32("the version")
    if version & 0xFFFF == 0 and version:
        raise LayoutError(f"{name}: a big-endian GGUF file; convert it to little endian")
    if version not in VERSIONS:
        raise LayoutError(
            f"{name}: GGUF version {version}; versions 2 and 3 are read, convert it again"
        )


def _metadata(cursor: Cursor, number: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(number):
        key = cursor.string(_MAX_KEY, "a key")
        if key in metadata:
            cursor.fail(f"key {show(key)} stands there twice")
        metadata[key] = cursor.value(show(key))
    return metadata


def _alignment(cursor: Cursor, metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get(_ALIGNMENT, 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        cursor.fail(f"{_ALIGNMENT} is {show(alignment)} and must be a power of two")
    return alignment


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the tensor table before it is believed."""

    name: str
    kind: int
    shape: tuple[int, ...]
    offset: int

    def placed(self, start: int, alignment: int, end: int, file: str) -> GGUFTensor:
        """The tensor, if it lies whole and aligned in the data from ``start`` to ``end``."""
        where = f"{file}: tensor {show(self.name)}"
        encoding, block, size = _block(self.kind, where)
        if self.shape[-1] % block:
            raise TensorError(
                f"{where} has rows of {self.shape[-1]} values, no multiple of {encoding}'s {block}"
            )
        offset, nbytes = start + self.offset, math.prod(self.shape) // block * size
        if self.offset % alignment or offset + nbytes > end:
            raise UnsafeCheckpoint(
                f"{where} claims {nbytes} bytes at {offset}, of a file of {end} bytes aligned to "
                f"{alignment}; the file is cut or damaged: fetch it again"
            )
        return GGUFTensor(self.name, encoding, self.shape, offset, nbytes)


def _entry(cursor: Cursor) -> _Entry:
    name = cursor.string(_MAX_NAME, "a tensor's name")
    what = f"tensor {show(name)}"
    if not name or not name.isprintable():
        cursor.fail(f"{what} has no printable name")
    dims = cursor.u32(f"the shape of {what}")
    if not 1 <= dims <= _MAX_DIMS:
        cursor.fail(f"{what} has {dims} dimensions; 1 to {_MAX_DIMS} are possible")
    shape = tuple(cursor.u64(f"the shape of {what}") for _ in range(dims))[::-1]
    if 0 in shape:
        cursor.fail(f"{what} has no values, its shape is {list(shape)}")
    return _Entry(
        name, cursor.u32(f"the type of {what}"), shape, cursor.u64(f"the place of {what}")
    )


def _block(kind: int, where: str) -> tuple[str, int, int]:
    """Name of a ggml type, values in its block, bytes of its block."""
    try:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    except ImportError as error:
        raise MissingExtra("gguf", "reading a GGUF file") from error
    try:
        encoding = GGMLQuantizationType(kind)
        return (encoding.name, *GGML_QUANT_SIZES[encoding])
    except (KeyError, ValueError):
        raise TensorError(
            f"{where} is of ggml type {kind}, which the installed package gguf does not know"
        ) from None


def _check_overlaps(tensors: Mapping[str, GGUFTensor], name: str) -> None:
    end, before = 0, ""
    for tensor in sorted(tensors.values(), key=attrgetter("offset")):
        if tensor.offset < end:
            raise UnsafeCheckpoint(
                f"{name}: tensors {show(before)} and {show(tensor.name)} overlap at byte "
                f"{tensor.offset}; the file is damaged or made to harm: fetch it again"
            )
        end, before = tensor.offset + tensor.nbytes, tensor.name
