"""The application: an engine and settings in, ASGI out.

Rules: everything that a server of one process needs is made here or passed in;
nothing is global, so that several may live side by side.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from ..responses.faults import ApiError
from .frame import Caught, Frame
from .http import refused, unrouted
from .noting import HEADERS
from .quota import HEADERS as RATES
from .routes import all_routes
from .service import Service
from .settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..engine import Engine, Sampling
    from .store import Store

RETRYING = ("retry-after", "retry-after-ms", "x-should-retry")
EXPOSED = ("x-request-id", "openai-processing-ms", *RETRYING, *HEADERS, *RATES)


def create_app(
    engine: Engine,
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    sampling: Sampling | None = None,
) -> Starlette:
    """A server in front of ``engine``, which stays the caller's to close.

    ``store`` takes the place of the one that ``settings`` name; ``sampling`` is
    how the model samples unasked, in place of what the engine recommends.
    ``app.state.service`` is what its routes share. Raises OptionError for
    settings that can't work.
    """
    service = Service(engine, settings or Settings(), store=store, sampling=sampling)
    app = Starlette(
        routes=all_routes(),
        middleware=[
            Middleware(Frame, service=service),
            *_cors(service.settings),
            Middleware(Caught, service=service),
        ],
        exception_handlers={ApiError: refused, HTTPException: unrouted},
        lifespan=_lifespan,
    )
    app.state.service = service
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    service: Service = app.state.service
    await service.open()
    try:
        yield
    finally:
        await service.close()


def _cors(settings: Settings) -> list[Middleware]:
    if not settings.cors_origin:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origin),
            allow_methods=["GET", "POST", "DELETE", "OPTIONS"],
            allow_headers=["*"],
            expose_headers=list(EXPOSED),
        )
    ]
