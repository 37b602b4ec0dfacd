"""A file of weights, memory-mapped: its header is bytes to walk, its tensors are views.

Rules: a view costs nothing until its values are looked at. What lies where is
checked by who reads the header, before a view is made.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CheckpointError, UnsafeCheckpoint
from .source import NUMPY, StoredTensor

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class Mapped:
    """The file at ``path``. Raises UnsafeCheckpoint for an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | None
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # there is nothing to map
            raise UnsafeCheckpoint(f"{path} is empty: download it again") from None

    @property
    def data(self) -> mmap.mmap:
        """All of its bytes; raises CheckpointError once the file is closed."""
        if self._map is None:
            raise CheckpointError(f"{self.path} is closed: nothing of it can be read")
        return self._map

    def tensor(
        self, name: str, dtype: str, shape: tuple[int, ...], start: int, nbytes: int
    ) -> StoredTensor:
        """The tensor of ``nbytes`` bytes at ``start``."""
        view = partial(self._view, dtype, shape, start, nbytes)
        return StoredTensor(name, dtype, shape, nbytes, self.path, view)

    def _view(self, dtype: str, shape: tuple[int, ...], start: int, nbytes: int) -> NDArray[Any]:
        kind = np.dtype(NUMPY.get(dtype, np.uint8))
        count, data = nbytes // kind.itemsize, self.data
        if count == 0:  # it may lie at the very end, where NumPy takes nothing
            return np.empty(shape, kind)
        values = np.frombuffer(data, kind, count, start)
        return values.reshape(shape if dtype in NUMPY else (*shape[:-1], -1))

    def close(self) -> None:
        """Unmap the file; a view that is still held keeps its pages until it is dropped."""
        mapped, self._map = self._map, None
        with suppress(BufferError):
            if mapped is not None:
                mapped.close()
