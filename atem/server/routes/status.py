"""How the server is: alive, ready, its version, its counters.

Rules: no key is needed to see that it lives; the counters have an access of
their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from ... import __version__
from ...engine import upstream_of
from ...responses.faults import not_found
from ..http import answer
from ..metrics import MEDIA_TYPE

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..service import Service


def routes() -> list[Route]:
    """The routes of this file."""
    return [
        Route("/", root, methods=["GET", "HEAD"]),
        Route("/health", health, methods=["GET", "HEAD"]),
        Route("/ready", ready, methods=["GET", "HEAD"]),
        Route("/version", version),
        Route("/metrics", metrics),
    ]


async def root(_: Request) -> Response:
    """Something answers here."""
    return answer({"name": "atem-serve", "version": __version__})


async def health(_: Request) -> Response:
    """The process lives."""
    return answer({"status": "ok"})


async def ready(request: Request) -> Response:
    """Whether requests are taken, and what answers them: a server behind is asked."""
    service: Service = request.app.state.service
    reason = None if service.draining else await service.reaching.reason()
    state = "draining" if service.draining else "unreachable" if reason else "ready"
    about = service.engine.info
    body = {
        "status": state,
        "model": about.model,
        "backend": about.backend,
        "running": service.slots.running,
        "waiting": service.slots.waiting,
    }
    more = {"upstream": upstream_of(service.engine), "reason": reason}
    body |= {name: value for name, value in more.items() if value}
    return answer(body, status=200 if state == "ready" else 503)


async def version(_: Request) -> Response:
    """The version of atem."""
    return answer({"version": __version__})


async def metrics(request: Request) -> Response:
    """The counters."""
    service: Service = request.app.state.service
    access = service.settings.metrics
    if access == "off":
        raise not_found("There are no metrics here.")
    if access == "key":
        service.admit(request.headers)
    return Response(service.metrics.text(await service.store.size()), media_type=MEDIA_TYPE)
