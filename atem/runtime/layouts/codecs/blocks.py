"""A quantised matrix: codes, a scale for each group of inputs, and what goes on top.

Rules: value = code * scale (+ bias) (* or / the tensor's own factor), in float32
and in that order, as the formats define it (model.md 4.3, 4.5). Groups run
along the input axis, so that any rows can be read alone. Shapes and types are
checked when a codec is made; values when they are read, a bounded piece at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ....errors import TensorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..source import StoredTensor

    Floats = NDArray[np.float32]

PIECE: Final = 1 << 20
"""Values decoded at a time, or one row: what bounds the memory beside the result."""

_OPERATIONS: Final = {"multiply": np.multiply, "divide": np.divide}


@dataclass(frozen=True, slots=True)
class Groups:
    """One number for every ``size`` inputs of a row: ``stored`` [out, in / size].

    ``decode`` makes float32 of it. ``signed`` says whether a number below zero
    has a meaning (affine), or can only be damage (scales of blocks).
    """

    stored: StoredTensor
    size: int
    decode: Callable[[NDArray[Any]], Floats]
    signed: bool = False

    def read(self, rows: NDArray[np.intp]) -> Floats:
        """The numbers of ``rows``, [n, in / size, 1]."""
        numbers = self.decode(self.stored.array()[rows])
        good = np.isfinite(numbers)
        if not self.signed:
            good &= numbers >= 0
        if not good.all():
            row, group = np.argwhere(~good)[0]
            raise _damaged(self.stored, f"row {rows[row]}, group {group}", numbers[row, group])
        return numbers[..., None]


@dataclass(frozen=True, slots=True)
class Factor:
    """The one scale of a whole tensor: values are multiplied, or divided, by it."""

    stored: StoredTensor
    operation: Literal["multiply", "divide"] = "multiply"

    def apply(self, values: Floats) -> None:
        """Scale ``values`` in place."""
        number = self.stored.array().reshape(())
        if not (np.isfinite(number) and number > 0):
            raise _damaged(self.stored, "the scale of the whole tensor", number)
        _OPERATIONS[self.operation](values, number, out=values)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The codec of a matrix ``shape`` [out, in] that is stored as ``codes`` and scales.

    ``unpack`` makes values [n, in] of the bytes of n rows of ``codes``. It is made
    by the functions of ``affine``, ``fp4``, ``fp8`` and ``gguf``, which check the parts.
    """

    encoding: str
    shape: tuple[int, ...]
    codes: StoredTensor
    unpack: Callable[[NDArray[np.uint8]], Floats]
    scales: Groups | None = None
    biases: Groups | None = None
    factor: Factor | None = None

    @property
    def _stored(self) -> tuple[StoredTensor, ...]:
        beside = (self.scales, self.biases, self.factor)
        return (self.codes, *(part.stored for part in beside if part is not None))

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the stored tensors that are read, the codes first."""
        return tuple(stored.name for stored in self._stored)

    @property
    def stored_bytes(self) -> int:
        """Bytes on disk, scales included."""
        return sum(stored.nbytes for stored in self._stored)

    def read(self, rows: Sequence[int] | slice | None = None) -> Floats:
        """All rows, or some, in float32. Raises TensorError for values that can't be."""
        inputs = self.shape[1]
        numbers = np.arange(self.shape[0])[slice(None) if rows is None else rows]
        values = np.empty((len(numbers), inputs), np.float32)
        step = max(1, PIECE // inputs)
        for start in range(0, len(numbers), step):
            piece = slice(start, start + step)
            values[piece] = self._decode(numbers[piece])
        return values

    def _decode(self, rows: NDArray[np.intp]) -> Floats:
        data = np.ascontiguousarray(self.codes.array()[rows]).view(np.uint8)
        with np.errstate(over="ignore", invalid="ignore"):  # the check below says it better
            values = self._scaled(self.unpack(data), rows)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise _damaged(self.codes, f"row {rows[row]}, column {column}", values[row, column])
        return values

    def _scaled(self, values: Floats, rows: NDArray[np.intp]) -> Floats:
        if self.scales is not None:
            grouped = values.reshape(len(rows), -1, self.scales.size)
            grouped *= self.scales.read(rows)
            if self.biases is not None:
                grouped += self.biases.read(rows)
        if self.factor is not None:
            self.factor.apply(values)
        return values


def require(stored: StoredTensor, dtypes: Sequence[str], shape: tuple[int, ...]) -> StoredTensor:
    """``stored`` itself; TensorError if its type or shape isn't what the format has."""
    _require_type(stored, dtypes)
    if stored.shape != shape:
        raise TensorError(
            f"{stored.file}: {stored.name}: got shape {list(stored.shape)}, expected {list(shape)};"
            " the parts of a quantised module don't fit each other, or the quantisation that"
            " config.json declares"
        )
    return stored


def factor(stored: StoredTensor, operation: Literal["multiply", "divide"] = "multiply") -> Factor:
    """The scale of a whole tensor, if ``stored`` is a single float32 ([] or [1])."""
    shape = () if stored.shape == () else (1,)
    return Factor(require(stored, ("F32",), shape), operation)


def matrix_shape(codes: StoredTensor, dtypes: Sequence[str], bits: int) -> tuple[int, int]:
    """Shape [out, in] of the values in ``codes``, each of ``bits``; TensorError for others."""
    _require_type(codes, dtypes)
    if len(codes.shape) != 2:
        raise TensorError(
            f"{codes.file}: {codes.name}: got shape {list(codes.shape)}, expected a matrix"
        )
    rows, words = codes.shape
    return rows, _whole(codes, words * (32 if codes.dtype == "U32" else 8), bits, "codes of bits")


def grouped_shape(numbers: StoredTensor, shape: tuple[int, int], size: int) -> tuple[int, int]:
    """Shape of one number for every ``size`` inputs of a matrix ``shape``."""
    return shape[0], _whole(numbers, shape[1], size, "groups of values")


def _whole(stored: StoredTensor, amount: int, unit: int, what: str) -> int:
    if amount % unit or amount == 0:
        raise TensorError(
            f"{stored.file}: {stored.name}: a row of {amount} can't be cut into {what} of size"
            f" {unit}: check the quantisation that config.json declares"
        )
    return amount // unit


def _require_type(stored: StoredTensor, dtypes: Sequence[str]) -> None:
    if stored.dtype not in dtypes:
        raise TensorError(
            f"{stored.file}: {stored.name}: got type {stored.dtype}, expected"
            f" {' or '.join(dtypes)}: check the quantisation that config.json declares"
        )


def _damaged(stored: StoredTensor, where: str, value: Any) -> TensorError:
    return TensorError(
        f"{stored.file}: {stored.name}: {where} is {value}, which can't be right; the file is"
        " damaged or was converted wrongly: fetch or convert it again"
    )
