"""What a request asked for and won't get: told in headers, and in the log.

Rules: nothing is left out in silence. A header names what a client can't see in
the answer; the log has the same line, which is all there is on a WebSocket. A
note names fields, types and places, and nothing that anybody said. Source:
responses.md 1.2, 1.6.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from ..responses.halves import MAX_NAME, MAX_NAMED

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from ..engine import EngineInfo
    from ..responses.ask import Ask

DROPPED: Final = "x-atem-dropped-tools"
TRUNCATED: Final = "x-atem-truncated-messages"
NOTES: Final = "x-atem-notes"
HEADERS: Final = (DROPPED, TRUNCATED, NOTES)

LONGEST: Final = 1000
"""Characters of a header: a proxy may refuse more than a few thousand."""

MORE: Final = "..."

INCLUDE: Final = re.compile(r"include(\[\d*\])?")
"""The ways that clients write a list in a query."""

AS_MADE: Final = "has no effect: a response is read as it was made"

log = logging.getLogger("atem.server")


def noted(ask: Ask, info: EngineInfo, *, counts: bool = True) -> dict[str, str]:
    """Headers that name what of ``ask`` has no effect (see ``Ask.lacking``); they are logged."""
    found = {
        DROPPED: ", ".join(ask.tools.dropped),
        TRUNCATED: str(ask.left_out or ""),
        NOTES: "; ".join([*ask.notes, *ask.lacking(info, counts=counts)]),
    }
    return _told(found)


def noted_in_reading(query: QueryParams) -> dict[str, str]:
    """The same for the query of a response, which is read as it was made."""
    given = [value for key, value in query.multi_items() if INCLUDE.fullmatch(key)]
    notes = [f"include {name[:MAX_NAME]!r} {AS_MADE}" for name in given[:MAX_NAMED]]
    if query.get("include_obfuscation", "false").lower() in ("true", "1"):
        notes.append("include_obfuscation has no effect: deltas are not obfuscated")
    return _told({NOTES: "; ".join(notes)})


def _told(found: dict[str, str]) -> dict[str, str]:
    headers = {name: plain(value) for name, value in found.items() if value}
    if headers:
        log.info("not done as asked: %s", ", ".join(f"{n}: {v}" for n, v in headers.items()))
    return headers


def plain(value: str) -> str:
    """``value`` as a header may hold it, and a line of a log."""
    text = "".join(c if " " <= c <= "~" else "?" for c in value)
    return text if len(text) <= LONGEST else text[: LONGEST - len(MORE)] + MORE
