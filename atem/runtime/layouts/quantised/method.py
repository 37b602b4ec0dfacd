"""What a quantisation method tells a layout: which codec a module has, and what nobody needs.

Rules: a method knows parts of modules (``weight``, ``scales``, ...), never
which canonical tensor a module is: naming and quantisation don't depend on each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ....errors import LayoutError
from ...quoting import some
from ..codecs.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..codecs import Codec, Parts
    from ..source import Source

CACHE_SCALES: Final = {
    "scales of a quantised cache (atem's is not quantised)": re.compile(r"\.[kv]_scale$"),
}
"""What a note says -> end of stored names; ModelOpt and compressed-tensors write these."""


@dataclass(frozen=True, slots=True)
class Method:
    """How the modules of one checkpoint are quantised.

    ``build`` makes the codec of a module from its name and its stored parts,
    and returns None for parts that it can't read together. ``dropped`` names
    stored tensors that take no part in values: what a note says -> pattern.
    """

    name: str
    build: Callable[[str, Parts], Codec | None]
    dropped: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def codec(self, source: Source, module: str) -> Codec | None:
        """The codec of ``module``, None when nothing of it is stored.

        Raises LayoutError for parts that don't belong together, TensorError for
        types and shapes that don't, ConfigError where the configuration
        contradicts what is stored.
        """
        stored = source.modules.get(module)
        if stored is None:
            return None
        parts = {end: tensor for end, tensor in stored.items() if not self._drops(tensor.name)}
        found = self.build(module, parts)
        if found is None:
            raise _unread(source.path, module, parts, self.name)
        return found

    def _drops(self, name: str) -> bool:
        return any(pattern.search(name) for pattern in self.dropped.values())


def plain(module: str, parts: Parts) -> Codec | None:
    """The codec of a module that isn't quantised."""
    return Plain(parts["weight"]) if parts.keys() == {"weight"} else None


def _unread(path: Path, module: str, parts: Parts, method: str) -> LayoutError:
    kinds = some([f"{part} {tensor.dtype}" for part, tensor in sorted(parts.items())])
    return LayoutError(
        f"{path}: {module} is stored as ({kinds}), which atem can't read in a checkpoint"
        f" whose quantisation is {method!r}"
    )
