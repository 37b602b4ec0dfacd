"""The routes, one file for each resource.

Rules: every path answers with and without ``/v1``. A handler reads, asks the
service and answers; it decides nothing that another route has to decide too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import (
    chat,
    compact,
    conversations,
    inspect,
    messages,
    models,
    responses,
    status,
    websocket,
)

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


# A fixed path stands before one with a name in its place.
RESOURCES = (compact, responses, websocket, conversations, models, chat, messages)


def all_routes() -> list[BaseRoute]:
    """All of them."""
    found: list[BaseRoute] = [*status.routes(), *inspect.routes()]
    for prefix in ("/v1", ""):
        for resource in RESOURCES:
            found += resource.routes(prefix)
    return found
