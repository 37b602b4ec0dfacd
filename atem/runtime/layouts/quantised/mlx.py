"""MLX's own quantisation: the block ``quantization`` of the configuration.

Rules: a module is quantised where ``scales`` are stored beside its ``weight``
(model.md 4.3). Mode, bits and group size are those of the block, or of the
module's own entry in it, keyed by its path. A wrong one can't go unseen: codes,
scales and the model's sizes fit together for one choice only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....errors import ConfigError
from ...quoting import named, show
from ..codecs import affine as uniform
from ..codecs.affine import affine
from ..codecs.fp4 import mxfp4, nvfp4
from ..codecs.fp8 import mxfp8
from .method import Method, plain

if TYPE_CHECKING:
    from ..codecs import Codec, Parts
    from ..source import Source


class Mode(NamedTuple):
    """Group sizes and bits that a mode can have; MLX's defaults come first."""

    groups: tuple[int, ...]
    bits: tuple[int, ...]


MODES: Final = {
    "affine": Mode((64, *uniform.GROUPS), (4, *uniform.BITS)),
    "nvfp4": Mode((16,), (4,)),
    "mxfp4": Mode((32,), (4,)),
    "mxfp8": Mode((32,), (8,)),
}

_FLOATS: Final = {"nvfp4": nvfp4, "mxfp4": mxfp4, "mxfp8": mxfp8}


class Spec(NamedTuple):
    """How one module is quantised."""

    mode: str
    group: int
    bits: int


def read(source: Source, block: Mapping[str, Any]) -> Method:
    """The method that ``block`` describes. Raises ConfigError for what MLX doesn't have."""
    where = f"{source.root / 'config.json'}: quantization"
    default = _spec(block, where)
    modules = {
        module: _override(value, default, f"{where} of {named(module)}")
        for module, value in block.items()
        if isinstance(value, Mapping | bool)
    }

    def build(module: str, parts: Parts) -> Codec | None:
        if "scales" not in parts:
            return plain(module, parts)
        spec = modules.get(module, default)
        if spec is None:
            raise ConfigError(
                f"{where} of {module} is false, and scales are stored: weights and configuration"
                " are of different conversions"
            )
        return _quantised(spec, parts)

    return Method("mlx", build)


def _quantised(spec: Spec, parts: Parts) -> Codec | None:
    expected = {"weight", "scales"} | ({"biases"} if spec.mode == "affine" else set())
    if parts.keys() != expected:
        return None
    if spec.mode == "affine":
        stored = parts["weight"], parts["scales"], parts["biases"]
        return affine(*stored, bits=spec.bits, group=spec.group)
    return _FLOATS[spec.mode](parts["weight"], parts["scales"])


def _override(value: Mapping[str, Any] | bool, default: Spec, where: str) -> Spec | None:
    if isinstance(value, bool):
        return default if value else None
    return _spec(value, where)


def _spec(block: Mapping[str, Any], where: str) -> Spec:
    name = block.get("mode") or "affine"
    mode = MODES.get(name) if isinstance(name, str) else None
    if mode is None:
        raise ConfigError(f"{where}: mode {show(name)} is none of {', '.join(MODES)}")
    group = _choice(block, "group_size", mode.groups, where)
    return Spec(name, group, _choice(block, "bits", mode.bits, where))


def _choice(block: Mapping[str, Any], key: str, allowed: tuple[int, ...], where: str) -> int:
    value = block.get(key)
    if value is None:
        return allowed[0]
    if type(value) is not int or value not in allowed:
        known = ", ".join(map(str, sorted(set(allowed))))
        raise ConfigError(f"{where}: {key} is {show(value)}, and atem reads {known}")
    return value
