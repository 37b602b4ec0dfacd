"""ModelOpt: NVFP4, MXFP8 and FP8, each module by itself.

Rules: model.md 4.5. The types of what is stored tell a module's format; what
the configuration says of the module, under the name it has in this file, must agree.
Scales of activations and caches are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ....errors import ConfigError
from ...quoting import named, show
from ..codecs.blocks import factor
from ..codecs.fp4 import NV_GROUP, nvfp4
from ..codecs.fp8 import MX_GROUP, fp8, mxfp8
from .method import CACHE_SCALES, Method, plain

if TYPE_CHECKING:
    from ..codecs import Codec, Parts
    from ..source import Source

ALGORITHMS: Final = {"NVFP4": "NVFP4", "W4A16_NVFP4": "NVFP4", "MXFP8": "MXFP8", "FP8": "FP8"}
"""``quant_algo`` -> how weights are stored."""

MIXED: Final = "MIXED_PRECISION"

GROUPS: Final = {"NVFP4": NV_GROUP, "MXFP8": MX_GROUP}

DROPPED: Final = CACHE_SCALES | {
    "scales of activations (atem's are not quantised)": re.compile(r"\.input_scale$"),
}


def read(source: Source, block: Mapping[str, Any]) -> Method:
    """The method that ``block``, and ``hf_quant_config.json`` beside it, describe.

    Raises ConfigError as :func:`described` and :func:`further` do.
    """
    return described(source, further(source) | dict(block))


def described(source: Source, block: Mapping[str, Any]) -> Method:
    """The method of all that is said. Raises ConfigError for an algorithm that isn't read."""
    where = f"{source.path}: ModelOpt's quant_algo"
    algorithm = block.get("quant_algo")
    default = None if algorithm in (None, MIXED) else _encoding(algorithm, block, where)
    listed = _listed(block, where)

    def build(module: str, parts: Parts) -> Codec | None:
        found = _by_parts(module, parts)
        expected = listed.get(module)
        if found is not None and expected is None and parts.keys() != {"weight"}:
            expected = default
        if found is not None and expected not in {None, found.encoding}:
            raise ConfigError(
                f"{where} of {module} means {expected}, and it is stored as {found.encoding}:"
                " weights and configuration are of different conversions"
            )
        return found

    return Method("modelopt", build, DROPPED)


def further(source: Source) -> dict[str, Any]:
    """The block ``quantization`` of ``hf_quant_config.json``; {} when there is no such file.

    Raises ConfigError when another tool than ModelOpt wrote it.
    """
    found = source.json("hf_quant_config.json") or {}
    producer = found.get("producer", {"name": "modelopt"})
    name = producer.get("name") if isinstance(producer, Mapping) else producer
    if name != "modelopt":
        raise ConfigError(
            f"{source.path}: hf_quant_config.json is by {show(name)}, and atem reads modelopt's"
        )
    block = found.get("quantization", {})
    return dict(block) if isinstance(block, Mapping) else {}


def _by_parts(module: str, parts: Parts) -> Codec | None:
    ends = parts.keys()
    if ends == {"weight", "weight_scale", "weight_scale_2"}:
        whole = factor(parts["weight_scale_2"])
        return nvfp4(parts["weight"], parts["weight_scale"], whole)
    if ends == {"weight", "weight_scale"}:
        per_tensor = parts["weight_scale"].dtype == "F32"
        return (fp8 if per_tensor else mxfp8)(parts["weight"], parts["weight_scale"])
    return plain(module, parts)


def _listed(block: Mapping[str, Any], where: str) -> dict[str, str]:
    layers = block.get("quantized_layers") or {}
    if not isinstance(layers, Mapping):
        raise ConfigError(f"{where}: quantized_layers is not an object")
    return {
        module: _encoding(
            entry.get("quant_algo") if isinstance(entry, Mapping) else entry,
            entry if isinstance(entry, Mapping) else {},
            f"{where} of {named(module)}",
        )
        for module, entry in layers.items()
    }


def _encoding(algorithm: Any, block: Mapping[str, Any], where: str) -> str:
    found = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
    if found is None:
        raise ConfigError(
            f"{where} is {show(algorithm)}, and atem reads {', '.join([*ALGORITHMS, MIXED])}"
        )
    size = block.get("group_size")
    if size is not None and size != GROUPS.get(found, size):
        raise ConfigError(f"{where}: group_size is {show(size)}, and {found} has {GROUPS[found]}")
    return found
