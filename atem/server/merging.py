"""Deltas that wait together go out together.

Rules: only text that follows text of the same item, and nothing else between
them; the deltas joined stay the text. Events lose their numbers here, and get
them as they go out. Source: responses.md 5.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..responses.outcome import Event

TEXT: Final = frozenset(
    f"response.{kind}.delta"
    for kind in ("output_text", "reasoning", "reasoning_text", "reasoning_summary_text")
)


def merged(events: list[Event]) -> list[Event]:
    """``events`` with each run of deltas as one."""
    if len(events) == 1:
        return events
    kept: list[Event] = []
    for text, run in groupby(events, _text):
        several = list(run)
        kept += several if text is None else [_joined(several)]
    return kept


def _text(event: Event) -> tuple[str, str] | None:
    """The text that an event adds to, None for any other event."""
    return (event["type"], event["item_id"]) if event["type"] in TEXT else None


def _joined(deltas: list[Event]) -> Event:
    if len(deltas) == 1:
        return deltas[0]
    one = {**deltas[0], "delta": "".join(event["delta"] for event in deltas)}
    if "logprobs" in one:
        one["logprobs"] = [token for event in deltas for token in event["logprobs"]]
    return one
