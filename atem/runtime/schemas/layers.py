"""Which layers slide and rotate: lists read against each other (model.md 1.2, 3.4).

Rules: a missing list is the model's own pattern, counted from the last layer. A
present one is checked, entry by entry, and messages give the indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from ...errors import ConfigError
from ..config import LayerType, layer_pattern
from ..quoting import show, some
from .parse import is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LAYER_TYPES: Final = get_args(LayerType)


def layer_types(
    raw: Mapping[str, Any],
    rotates: Sequence[bool],
    rope_key: str,
    where: str = "",
    *,
    period: int = 4,
) -> tuple[LayerType, ...]:
    """``raw["layer_types"]``, or the pattern; full attention exactly where rope is off.

    ``rotates`` has one entry for each layer and was read from ``rope_key``.
    Raises ConfigError with the layers at which the two differ.
    """
    layers = len(rotates)
    rule = " or ".join(LAYER_TYPES)
    found = entries(raw, "layer_types", layers, where, good=lambda v: v in LAYER_TYPES, rule=rule)
    types = layer_pattern(layers, period) if found is None else tuple(found)
    differ = [i for i, turns in enumerate(rotates) if (types[i] == "sliding_attention") != turns]
    if differ:
        raise ConfigError(
            f"{where}layer_types and {where}{rope_key} differ at layers {some(differ)}: full "
            "attention is without rope and sliding attention with it. A missing list is taken "
            "as the released pattern, counted from the last layer; write both lists"
        )
    return types


def entries(
    raw: Mapping[str, Any],
    key: str,
    layers: int,
    where: str,
    *,
    good: Callable[[Any], bool],
    rule: str,
) -> list[Any] | None:
    """The list at ``key``, a ``good`` entry for each layer; None if it is missing or null.

    Raises ConfigError, which gives the ``rule`` that entries keep.
    """
    values = raw.get(key)
    if values is None:
        return None
    if not isinstance(values, list | tuple):
        raise ConfigError(f"{where}{key}={show(values)}; it is a list, one for each layer: {rule}")
    if len(values) != layers:
        raise ConfigError(
            f"{where}{key} has {len(values)} entries for {layers} layers; it has one for each"
        )
    wrong = [i for i, value in enumerate(values) if not good(value)]
    if wrong:
        first = show(values[wrong[0]])
        raise ConfigError(
            f"{where}{key}[{wrong[0]}]={first} (at layers {some(wrong)}); entries are {rule}"
        )
    return list(values)


def flags(raw: Mapping[str, Any], layers: int, period: int) -> list[bool]:
    """``no_rope_layers`` as whether each layer rotates; 1 is yes, 0 is no (model.md 3.2)."""
    rule = "1 (rope) or 0 (no rope)"
    values = entries(
        raw, "no_rope_layers", layers, "", good=lambda v: is_whole(v) and v in (0, 1), rule=rule
    )
    if values is None:
        return default_rotation(layers, period)
    return [value == 1 for value in values]


def thetas(raw: Mapping[str, Any], layers: int, theta: float, where: str) -> list[bool]:
    """``layer_rope_theta`` as whether each layer rotates: 0 is no, the global theta is yes."""
    values = entries(
        raw, "layer_rope_theta", layers, where,
        good=lambda v: not isinstance(v, bool) and v in (0, theta),
        rule=f"0 or the rope theta of the whole model, {theta}: implementations differ in which "
        "of two they take",
    )  # fmt: skip
    if values is None:
        return default_rotation(layers)
    return [value != 0 for value in values]


def default_rotation(layers: int, period: int = 4) -> list[bool]:
    """Whether each layer rotates in the released pattern."""
    return [kind == "sliding_attention" for kind in layer_pattern(layers, period)]
