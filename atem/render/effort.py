"""How hard the model is asked to think: its own four words, and what other APIs call them.

Rules: a table and a look-up. The strength is a sentence in the prompt; the
model has no switch that turns reasoning off (wire_format 2), so "none" is the
least there is.
"""

from __future__ import annotations

from typing import Final

from ..errors import OptionError

STRENGTHS: Final = ("low", "medium", "high", "xhigh")
DEFAULT_STRENGTH: Final = "high"

EFFORTS: Final = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "xhigh",
}
"""Effort names of other APIs -> the model's strength (vllm-project/vllm#54186)."""


def strength_of(reasoning_strength: str | None = None, effort: str | None = None) -> str:
    """The strength that two optional names ask for; "high" without either.

    Raises OptionError for an unknown name, and if the two don't agree.
    """
    wanted = _look_up("reasoning_strength", reasoning_strength, {s: s for s in STRENGTHS})
    asked = _look_up("effort", effort, EFFORTS)
    if wanted and asked and wanted != asked:
        raise OptionError(
            f"reasoning_strength={reasoning_strength!r} and effort={effort!r} (which is "
            f"{asked!r}) differ; give one of them"
        )
    return wanted or asked or DEFAULT_STRENGTH


def _look_up(option: str, name: str | None, table: dict[str, str]) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or name not in table:
        raise OptionError(f"{option}={name!r} is unknown; use one of {', '.join(table)}")
    return table[name]
