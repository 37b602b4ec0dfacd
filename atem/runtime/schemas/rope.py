"""The one rope that the model has: its theta, and that nothing scales it (model.md 1.4, 3.4).

Rules: a missing theta is not guessed where implementations guess differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigError
from ..quoting import show
from .common import require_neutral
from .parse import as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

NEUTRAL: Final[dict[str, object]] = {
    "factor": 1, "attention_factor": 1, "partial_rotary_factor": 1, "mrope_section": None,
}  # fmt: skip
"""Keys of ``rope_parameters`` that change angles, and the value under which they don't."""


def rope_theta(raw: Mapping[str, Any], where: str, default: float | None = None) -> float:
    """Theta of ``rope_parameters``, else of ``rope_theta``, else ``default``.

    Raises ConfigError if two differ, if there is none, and for any scaling.
    """
    found = dict(_declared(raw, where))
    if not found and default is None:
        raise ConfigError(
            f"{where}rope_parameters is missing, and implementations fill in different thetas "
            "(transformers 10000, others 500000). Write what the weights were trained with: "
            '{"rope_type": "default", "rope_theta": 500000.0} for the released model'
        )
    wrong = {key: value for key, value in found.items() if not _is_theta(value)}
    if wrong:
        raise ConfigError(f"{_list(wrong)}; it is a positive number")
    if len(set(found.values())) > 1:
        raise ConfigError(f"{_list(found)}: the model has one theta; keep the right one")
    return float(next(iter(found.values()), default or 0.0))


def _declared(raw: Mapping[str, Any], where: str) -> list[tuple[str, Any]]:
    """Key and value of every theta in ``raw``, after a look at what stands around it."""
    found = [(where + "rope_theta", raw["rope_theta"])] if raw.get("rope_theta") is not None else []
    require_neutral(raw, {"partial_rotary_factor": 1}, where)
    for key in ("rope_parameters", "rope_scaling"):
        if raw.get(key) is None:
            continue
        at = f"{where}{key}."
        inner = as_object(raw[key], where + key)
        _require_default_type(inner, at)
        require_neutral(inner, NEUTRAL, at)
        if inner.get("rope_theta") is not None:
            found.append((at + "rope_theta", inner["rope_theta"]))
    return found


def _require_default_type(inner: Mapping[str, Any], at: str) -> None:
    for key in ("rope_type", "type"):
        if inner.get(key) not in (None, "default"):
            raise ConfigError(
                f"{at}{key}={show(inner[key])}: scaled rope is not implemented, and the weights "
                "give other tokens without it; use a checkpoint whose rope_type is 'default'"
            )
    nested = [key for key in ("full_attention", "sliding_attention") if key in inner]
    if nested:
        raise ConfigError(
            f"{at}{nested[0]}: a rope for each kind of layer is not implemented; full layers "
            "have none, so write the sliding one's values alone"
        )


def _is_theta(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1e12


def _list(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={show(value)}" for key, value in found.items())
