"""A checkpoint's files behind the gate: configuration, side files, and stored tensors by name.

Rules: opening reads headers and small JSON files only. A stored tensor is a
view of a memory-mapped file: it costs nothing until its values are looked at.
What stored names mean is a layout's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from .. import gate
from ..checkpoint import SideFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

NUMPY: Final[dict[str, Any]] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64,
}  # fmt: skip
"""Stored dtype -> NumPy's. "F4" is absent: two values a byte, given as bytes."""


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


def side_files(folder: gate.Folder) -> SideFiles:
    """The files beside the weights, as far as they are there."""
    tokenizer_config = folder.json("tokenizer_config.json") or {}
    template = folder.file("chat_template.jinja")
    return SideFiles(
        tokenizer=folder.file("tokenizer.json"),
        tokenizer_config=tokenizer_config,
        generation_config=folder.json("generation_config.json") or {},
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
