"""What is served.

Rules: one model under the names that it was given; a wildcard is no name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ..http import answer, endpoint

if TYPE_CHECKING:
    from starlette.responses import Response

    from ..http import Call
    from ..service import Service


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    return [
        Route(f"{prefix}/models", endpoint(listed)),
        Route(f"{prefix}/models/{{name:path}}", endpoint(one)),
    ]


async def listed(call: Call) -> Response:
    """All models."""
    names = [name for name in call.service.names if "*" not in name]
    models = [_model(call.service, name) for name in names or [call.service.engine.info.model]]
    return answer({"object": "list", "data": models})


async def one(call: Call) -> Response:
    """One model, under a name that it answers to."""
    return answer(_model(call.service, call.service.model(call.path["name"])))


def _model(service: Service, name: str) -> dict[str, Any]:
    context = service.engine.info.context
    return {
        "id": name,
        "object": "model",
        "created": int(service.started),
        "owned_by": "atem",
        "max_model_len": context,
        "context_length": context,
    }
