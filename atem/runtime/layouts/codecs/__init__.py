"""Codecs: how the values of one module are stored, and what reads them.

Rules: a codec is chosen per module, by which parts are stored beside each
other and by their dtypes, never by a name's reputation (model.md 4.3, 4.5). A
set of parts that no codec reads is an error that names it. Groups of values run
along the input axis, so any codec can read some rows of the output axis alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..source import Source, StoredTensor


class Codec(Protocol):
    """A reader of the values of one module, whatever they are stored as."""

    @property
    def encoding(self) -> str:
        """As in :class:`~atem.runtime.checkpoint.TensorInfo`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is read, not of what is stored."""

    @property
    def stored_bytes(self) -> int:
        """Bytes on disk, scales included."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Stored names that it consumes; the first names the tensor in messages."""

    def read(self, rows: Sequence[int] | slice | None = None, /) -> NDArray[Any]:
        """The values (of some rows of the first axis), freshly made and C-contiguous.

        Float32, float16 or bfloat16 as stored when nothing is quantised, else
        float32. Raises TensorError for scales that can't be.
        """


Parts: TypeAlias = "Mapping[str, StoredTensor]"
"""The stored tensors of a module, by the last part of their names."""

Choose: TypeAlias = "Callable[[Source, str], Codec | None]"
"""From a source and a module's name; None when nothing of it is stored."""
