"""What outlives a request: responses, their items, and the events of background ones.

Rules: a back end keeps records and event logs and knows nothing of the API.
``record`` is what is kept, ``interface`` what a back end can do; ``memory``,
``sqlite``, ``postgres`` and ``redis`` are those there are, and ``network`` is
what the last two share. Every one passes tests/server/test_store.py.
"""

from __future__ import annotations

from .interface import Bounds, Store
from .record import Record

__all__ = ["Bounds", "Record", "Store"]
