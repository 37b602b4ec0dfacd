"""compressed-tensors: NVFP4 in ``weight_packed``, ``weight_scale``, ``weight_global_scale``.

Rules: model.md 4.5; values are divided by the global scale. A module is
quantised where ``weight_packed`` is stored. Scales of activations are dropped:
they say how the inputs were rounded in training or calibration, not what the weights are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ....errors import ConfigError
from ...quoting import named, show
from ..codecs.blocks import factor
from ..codecs.fp4 import nvfp4
from .method import CACHE_SCALES, Method, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..codecs import Codec, Parts
    from ..source import Source

FORMAT: Final = "nvfp4-pack-quantized"

DROPPED: Final = CACHE_SCALES | {
    "scales of activations (atem's are not quantised)": re.compile(r"\.input_global_scale$"),
}

_WEIGHTS: Final = {"num_bits": 4, "type": "float", "group_size": 16, "symmetric": True}
"""What NVFP4 is, in the words of a group of the configuration."""

_TRANSFORMS: Final = ("transform_config", "sparsity_config")
"""Blocks that change what stored weights mean."""


def read(source: Source, block: Mapping[str, Any]) -> Method:
    """The method that ``quantization_config`` describes. Raises ConfigError for other formats."""
    where = f"{source.root / 'config.json'}: quantization_config"
    for key in _TRANSFORMS:
        if block.get(key):
            raise ConfigError(f"{where}: {key} is set, and atem does not read transformed weights")
    for name, group in _groups(block):
        _check_group(f"{where}: {name}", block, group)
    return Method("compressed-tensors", _build, DROPPED)


def _build(module: str, parts: Parts) -> Codec | None:
    if parts.keys() != {"weight_packed", "weight_scale", "weight_global_scale"}:
        return plain(module, parts)
    whole = factor(parts["weight_global_scale"], "divide")
    return nvfp4(parts["weight_packed"], parts["weight_scale"], whole)


def _groups(block: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    groups = block.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        yield "format", {}
        return
    for name, group in groups.items():
        yield f"config_groups.{named(name)}", group if isinstance(group, Mapping) else {}


def _check_group(where: str, block: Mapping[str, Any], group: Mapping[str, Any]) -> None:
    found = group.get("format") or block.get("format")
    if found != FORMAT:
        raise ConfigError(f"{where} is {show(found)}; of compressed-tensors, atem reads {FORMAT}")
    weights = group.get("weights")
    for key, value in _WEIGHTS.items():
        given = weights.get(key, value) if isinstance(weights, Mapping) else value
        if given != value:
            raise ConfigError(f"{where}: weights.{key} is {show(given)}, and NVFP4 has {value!r}")
