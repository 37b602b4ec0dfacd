"""``reasoning``: how hard to think, what of it to show, and what of it to keep.

Rules: effort names go through the renderer's table. One that is not in it is
taken for the nearest and noted, never refused (responses.md 1.2); a later
``configuration_update`` item replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ..render import EFFORTS
from . import checks

if TYPE_CHECKING:
    from collections.abc import Mapping

PARAM: Final = "reasoning"

ALIASES: Final = {
    "off": "none",
    "disabled": "none",
    "minimum": "minimal",
    "extra_high": "xhigh",
    "maximum": "max",
    "ultra": "max",
}
"""What people write for the names of the table."""

SUMMARIES: Final = ("auto", "concise", "detailed")
CURRENT_TURN: Final = "current_turn"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the request says about reasoning.

    ``strength`` is the model's word for the effort, None for its default.
    ``summary`` says that reasoning is shown as a summary; ``current_turn`` that
    the model sees none of earlier turns. ``echo`` is the response object's ``reasoning``.
    """

    strength: str | None
    summary: bool
    current_turn: bool
    echo: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_reasoning(given: Mapping[str, Any] | None) -> Reasoning:
    """Read ``reasoning``. Raises ApiError for a value that is no word."""
    given = given or {}
    notes: list[str] = []
    effort = _effort(given.get("effort"), notes)
    summary = _summary(given.get("summary") or given.get("generate_summary"), notes)
    context = given.get("context")
    echo: dict[str, Any] = {"effort": effort, "summary": summary}
    if context is not None:
        echo["context"] = checks.one_of("auto", CURRENT_TURN, "all_turns")(
            context, f"{PARAM}.context"
        )
    if given.get("mode") not in (None, "standard"):
        notes.append("reasoning.mode has no effect: there is one mode")
    strength = EFFORTS[effort] if effort else None
    return Reasoning(strength, summary is not None, context == CURRENT_TURN, echo, tuple(notes))


def _effort(given: Any, notes: list[str]) -> str | None:
    if given is None:
        return None
    word = checks.text(given, f"{PARAM}.effort").casefold()
    if word in EFFORTS:
        return word
    near = get_close_matches(word[:32], [*EFFORTS, *ALIASES], n=1)
    found = ALIASES.get(near[0], near[0]) if near else None
    notes.append(
        f"reasoning.effort {given[:32]!r} is unknown and taken for {found or 'the default'}"
    )
    return found


def _summary(given: Any, notes: list[str]) -> str | None:
    if given is None or checks.text(given, f"{PARAM}.summary") == "none":
        return None
    if given in SUMMARIES:
        return str(given)
    notes.append(f"reasoning.summary {given[:32]!r} is unknown and taken for 'auto'")
    return "auto"
