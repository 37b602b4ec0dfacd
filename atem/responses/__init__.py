"""The Responses API as data: a request becomes a conversation, a turn becomes items and events.

Rules: no server, no IO, no clock, no thread. Times, ids and keys come in as
arguments; everything that goes out is plain dicts, ready for ``json.dumps``.
"""

from __future__ import annotations
