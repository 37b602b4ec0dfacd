"""Where a parser stands, for whoever looks on: inspectors, debuggers.

Rules: read only, and never what a caller acts on; for that there are events.
The names are those of the tables in :mod:`states` and docs/states.md.
"""

from __future__ import annotations

from typing import NamedTuple


class Standing(NamedTuple):
    """What a parser is doing between two tokens.

    ``state`` is the machine's. ``place`` says more where there is more: how far
    a header has been read, where a tool body's first reading stands, what an
    undecided terminator interrupted. ``recipient`` is that of the open message,
    None if none is open or none was named. ``read`` counts the characters that
    went in, ``told`` those that events account for; what lies between is held.
    """

    state: str
    place: str | None
    recipient: str | None
    told: int
    read: int
