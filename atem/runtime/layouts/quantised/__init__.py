"""How the modules of a checkpoint are quantised, by the method its configuration names.

Rules: one file per method, each with ``read``. A method that is not in the
table is an error that names it; none is guessed from the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ....errors import ConfigError
from ...quoting import show
from . import compressed_tensors, mlx, modelopt, quark
from .method import Method, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..source import Source

METHODS: Final[Mapping[str, Callable[[Source, Mapping[str, Any]], Method]]] = {
    "compressed-tensors": compressed_tensors.read,
    "modelopt": modelopt.read,
    "quark": quark.read,
    "mlx": mlx.read,
}
"""``quant_method`` -> its reader; MLX's block names no method."""

READ: Final = (
    "compressed-tensors (NVFP4), modelopt (NVFP4, MXFP8, FP8), quark (MXFP4), MLX's own and GGUF"
)


def quantisation(source: Source) -> Method:
    """The method of ``source``. Raises ConfigError for one that is not read."""
    block = _block(source, "quantization_config")
    own = _block(source, "quantization")
    if "quant_method" in block:
        return _named(source, block, own)
    if own or block:
        return mlx.read(source, own or block)
    beside = modelopt.further(source)
    return modelopt.described(source, beside) if beside else Method("none", plain)


def _named(source: Source, block: Mapping[str, Any], own: Mapping[str, Any]) -> Method:
    method = block["quant_method"]
    read = METHODS.get(method) if isinstance(method, str) else None
    if read is None:
        raise ConfigError(
            f"{source.path}: the weights are quantised by {show(method)}, which atem doesn't read;"
            f" take the original weights or a build by {READ}"
        )
    if own and read is not mlx.read:
        raise ConfigError(
            f"{source.path}: config.json has quantization_config (by {method}) and MLX's"
            " quantization: remove the one that doesn't belong to these weights"
        )
    return read(source, block)


def _block(source: Source, key: str) -> Mapping[str, Any]:
    """The block ``key`` of the configuration or of its text part; {} when there is none."""
    text = source.config.get("text_config")
    found = source.config.get(key) or (text.get(key) if isinstance(text, Mapping) else None)
    if found and not isinstance(found, Mapping):
        raise ConfigError(f"{source.root / 'config.json'}: {key} is not an object")
    return found or {}
