"""The routes, one file for each resource.

Rules: every path answers with and without ``/v1``. A handler reads, asks the
service and answers; it decides nothing that another route has to decide too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import chat, messages, models, responses, status, websocket

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


def all_routes() -> list[BaseRoute]:
    """All of them."""
    found: list[BaseRoute] = [*status.routes()]
    for prefix in ("/v1", ""):
        for resource in (responses, websocket, models, chat, messages):
            found += resource.routes(prefix)
    return found
