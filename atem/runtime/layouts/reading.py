"""Reading canonical tensors: a codec, an order of rows, an offset, for each canonical name.

Rules: what every layout does to a tensor is one of three things: take rows of
the output axis in some order, subtract 1 from a norm, and check what came out.
A tensor that is not finite is never handed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from ...errors import TensorError
from ..checkpoint import AXES, TensorInfo, canonical_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ..checkpoint import RopeStyle, SideFiles
    from ..config import ModelConfig
    from .codecs import Codec
    from .source import Source

EXPONENT: Final = {"float32": 0x7F800000, "float16": 0x7C00, "bfloat16": 0x7F80}
"""Bits that are all set only in infinities and NaNs."""

CHUNK: Final = 1 << 18
"""Values looked at in one go: a check needs no second copy of a table."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one canonical tensor comes out of what is stored.

    ``order[i]`` is the stored row of canonical row i; None leaves rows as they
    are. ``minus_one`` turns an absolute norm into an offset from 1, in float32.
    ``share`` counts the canonical tensors that lie in the stored one.
    """

    codec: Codec
    order: NDArray[np.intp] | None = None
    minus_one: bool = False
    share: int = 1

    def info(self, shape: tuple[int, ...]) -> TensorInfo:
        """What is known of it before it is read."""
        return TensorInfo(shape, self.codec.encoding, self.codec.stored_bytes // self.share)

    def read(self, rows: Sequence[int] | None = None) -> NDArray[Any]:
        """The tensor, or some of its rows, before it is checked."""
        values = self.codec.read(self._stored_rows(rows))
        if self.minus_one:
            with np.errstate(invalid="ignore"):  # of a signalling NaN: the check says it better
                return np.asarray(values.astype(np.float32) - np.float32(1))
        return values

    def _stored_rows(self, rows: Sequence[int] | None) -> Sequence[int] | None:
        if self.order is None:
            return rows
        stored: list[int] = (self.order if rows is None else self.order[list(rows)]).tolist()
        return stored


class StoredCheckpoint:
    """The one :class:`~atem.runtime.checkpoint.Checkpoint` made from files.

    ``readings`` has every canonical tensor, its shape checked.
    """

    def __init__(
        self,
        source: Source,
        layout: str,
        config: ModelConfig,
        rope_style: RopeStyle,
        readings: Mapping[str, Reading],
        *,
        has_vision: bool,
    ) -> None:
        self.path: Path = source.path
        self.layout = layout
        self.config = config
        self.rope_style: RopeStyle = rope_style
        self.files: SideFiles = source.files
        self.has_vision = has_vision
        self.notes = tuple(source.notes)
        self._source = source
        self._readings = readings
        self.tensors: Mapping[str, TensorInfo] = {
            name: readings[name].info(shape) for name, shape in canonical_shapes(config).items()
        }

    def read(self, name: str, /) -> NDArray[Any]:
        """The tensor; raises TensorError when a value is not finite, KeyError for other names."""
        values = np.ascontiguousarray(self._readings[name].read())
        self._check_finite(name, values)
        return values

    def rows(self, name: str, numbers: Sequence[int], /) -> NDArray[np.float32]:
        """Some rows of the tensor, in float32."""
        values = np.ascontiguousarray(self._readings[name].read(numbers), np.float32)
        self._check_finite(name, values)
        return values

    def close(self) -> None:
        """Give the files back; reading raises CheckpointError from now on."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_finite(self, name: str, values: NDArray[Any]) -> None:
        if not is_finite(values):
            stored = self._readings[name].codec.parts[0]
            raise TensorError(
                f"{self.path}: tensor {stored} ({name}) has values that are not finite:"
                " the file is damaged, download it again"
            )


def is_finite(values: NDArray[Any]) -> bool:
    """Whether no value is infinite or NaN; works by exponents, without a copy."""
    mask = EXPONENT[values.dtype.name]
    bits = values.reshape(-1).view(f"u{values.itemsize}")
    starts = range(0, bits.size, CHUNK)
    return all(int((bits[at : at + CHUNK] & mask).max()) < mask for at in starts)


def check_shape(name: str, shape: tuple[int, ...], codec: Codec, share: int, where: Path) -> None:
    """Raise TensorError when what is stored has not the canonical ``shape``, ``share`` times."""
    expected = (shape[0] * share, *shape[1:])
    if codec.shape == expected:
        return
    fields = " x ".join(AXES[name.rpartition(".")[2]])
    times = f"{share} * " if share > 1 else ""
    raise TensorError(
        f"{where}: tensor {codec.parts[0]} has shape {codec.shape}, and the configuration"
        f" asks for {expected} ({times}{fields}): these are of two models"
    )
