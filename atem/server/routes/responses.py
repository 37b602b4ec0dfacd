"""``/responses``: create, read, follow, cancel, delete.

Rules: what can be refused is refused before the first byte; whatever comes
later is an event of the response. Source: responses.md 1.1, 1.10.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ...responses.faults import bad_value
from ...responses.running.failures import status_of
from ..following import cancel as cancel_anywhere
from ..following import logged
from ..http import answer, endpoint
from ..jobs import Job
from ..keeping import response_record
from ..noting import noted_in_reading
from ..presence import unless_gone
from ..pulse import steady
from ..streams import COMMENT, EventStream, named
from .paging import asked, page, whole_number

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response

    from ..http import Call
    from ..reply import Reply
    from ..service import Service
    from ..store import Record


def routes(prefix: str) -> list[Route]:
    """The routes of this file."""
    one = f"{prefix}/responses/{{id}}"
    return [
        Route(f"{prefix}/responses", endpoint(create), methods=["POST"]),
        Route(f"{prefix}/responses/input_tokens", endpoint(input_tokens), methods=["POST"]),
        Route(one, endpoint(read), methods=["GET"]),
        Route(one, endpoint(delete), methods=["DELETE"]),
        Route(f"{one}/cancel", endpoint(cancel), methods=["POST"]),
        Route(f"{one}/input_items", endpoint(input_items), methods=["GET"]),
    ]


async def create(call: Call) -> Any:
    """Write a response: in one piece, as a stream, or in the background."""
    body = await call.body()
    reply, headers = await call.service.begin(body, call.tenant)
    if reply.ask.background:
        return await _in_background(call, reply, headers)
    if reply.ask.stream:
        return streamed(call.service, event_parts(reply), headers)
    return answer(await whole(call, reply), headers=headers)


async def whole(call: Call, reply: Reply) -> dict[str, Any]:
    """The finished response object. Raises ApiError if it failed, Gone if the client left."""
    try:
        await unless_gone(call.request.receive, reply.finish())
    finally:
        reply.leave()
    error = reply.builder.error
    if error is not None and reply.response["status"] == "failed":
        raise status_of(error)
    return reply.response


def streamed(
    service: Service, parts: AsyncGenerator[bytes, None], headers: dict[str, str]
) -> EventStream:
    """An answer of ``parts``."""
    return EventStream(
        parts,
        patience=service.settings.slow_reader_seconds,
        headers=headers,
        during=service.metrics.stream("sse"),
    )


async def event_parts(reply: Reply) -> AsyncGenerator[bytes, None]:
    """A reply as server-sent events."""
    kind = reply.service.settings.heartbeat
    async with aclosing(steady(reply, kind)) as batches:
        async for events in batches:
            if events or kind == "comment":
                yield b"".join(map(named, events)) or COMMENT


async def _in_background(call: Call, reply: Reply, headers: dict[str, str]) -> Any:
    service = call.service
    if service.settings.store == "off":
        raise bad_value("background", "background needs a store, and this server keeps nothing.")
    job = Job(reply)
    await job.start()
    if reply.ask.stream:
        record = await response_record([service.store], call.tenant, reply.id)
        return streamed(service, _log_parts(service, record, -1), headers)
    return answer(job.response, headers=headers)


async def _log_parts(service: Service, record: Record, after: int) -> AsyncGenerator[bytes, None]:
    async with aclosing(logged(service.store, record, after)) as pages:
        async for events in pages:
            yield b"".join(map(named, events))


async def read(call: Call) -> Any:
    """A stored response; with ``stream=true`` its events, from ``starting_after`` on."""
    record = await _record(call)
    headers = noted_in_reading(call.request.query_params)
    if call.query.get("stream", "false").lower() not in ("true", "1"):
        return answer(record.body["response"], headers=headers)
    after = whole_number("starting_after", call.query.get("starting_after", "-1"), least=-1)
    return streamed(call.service, _log_parts(call.service, record, after), headers)


async def delete(call: Call) -> Response:
    """Forget a response; one that is being written is cancelled first."""
    record = await _record(call)
    job = call.service.jobs.get((call.tenant, record.id))
    if job is not None:
        await job.cancel()
    await call.service.store.delete(call.tenant, record.id)
    return answer({"id": record.id, "object": "response", "deleted": True})


async def cancel(call: Call) -> Response:
    """End a response in the background; one that is over stays as it is."""
    record = await _record(call)
    if not record.body["response"]["background"]:
        raise bad_value("id", "Only a response with background: true can be cancelled.")
    await cancel_anywhere(call.service, record)
    return answer((await _record(call)).body["response"])


async def input_items(call: Call) -> Response:
    """The items that a response was asked with."""
    record = await _record(call)
    headers = noted_in_reading(call.request.query_params)
    return answer(page(record.body["input"], **asked(call.query)), headers=headers)


async def input_tokens(call: Call) -> Response:
    """How long the prompt of a create body is."""
    body = await call.body()
    body.setdefault("model", call.service.engine.info.model)
    count = await call.service.count(body, call.tenant)
    return answer({"object": "response.input_tokens", "input_tokens": count})


async def _record(call: Call) -> Record:
    return await response_record([call.service.store], call.tenant, call.path["id"])
