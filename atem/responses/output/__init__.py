"""The parts of a :class:`~atem.responses.builder.ResponseBuilder`: items in the making.

Rules: one file for each kind of open item. An item announces itself, grows by
deltas and closes itself; nobody else writes its events.
"""

from __future__ import annotations
