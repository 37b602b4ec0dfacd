"""Quark: MXFP4 in ``weight`` and ``weight_scale`` (model.md 4.5).

Rules: a module is quantised where ``weight_scale`` is stored; the configuration
must describe MXFP4 wherever it describes weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ....errors import ConfigError
from ...quoting import named, show
from ..codecs.fp4 import MX_GROUP, mxfp4
from .method import Method, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..codecs import Codec, Parts
    from ..source import Source

_MXFP4: Final = {"dtype": "fp4", "group_size": MX_GROUP, "scale_format": "e8m0"}
"""What MXFP4 is, in the words of the configuration."""


def read(source: Source, block: Mapping[str, Any]) -> Method:
    """The method that ``quantization_config`` describes. Raises ConfigError for other formats."""
    where = f"{source.root / 'config.json'}: quantization_config"
    for name, weights in _weights(block):
        for key, value in _MXFP4.items():
            if weights.get(key) != value:
                raise ConfigError(
                    f"{where}: {named(name)}: {key} of the weights is {show(weights.get(key))}; of"
                    f" Quark, atem reads MXFP4, which has {value!r}"
                )
    return Method("quark", _build)


def _build(module: str, parts: Parts) -> Codec | None:
    if parts.keys() == {"weight", "weight_scale"}:
        return mxfp4(parts["weight"], parts["weight_scale"])
    return plain(module, parts)


def _weights(block: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every description of weights in ``block``, the global one and those of single layers."""
    layers = block.get("layer_quant_config")
    found = {"global_quant_config": block.get("global_quant_config")}
    found |= layers if isinstance(layers, Mapping) else {}
    for name, described in found.items():
        weights = described.get("weight") if isinstance(described, Mapping) else None
        yield name, weights if isinstance(weights, Mapping) else {}
