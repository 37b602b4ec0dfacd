"""The parts of :class:`~atem.responses.run.Run`: one turn of the model being written.

Rules: an engine's steps in, parser events out, with what they cost. Nothing here
knows an item or an event of the API.
"""

from __future__ import annotations
