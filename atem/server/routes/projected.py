"""An API beside the Responses API: its request read as a create body, its answer made of a reply.

Rules: one way for all of them. Nothing is stored; what is wrong is told in the
words of the API that was asked. Source: responses.md 1.11, 1.12.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...responses.faults import ApiError
from ..http import answer
from ..pulse import steady
from .responses import streamed, whole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from ..http import Call
    from ..reply import Reply

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One API.

    ``body`` makes a create body of a request, ``fault`` says what is wrong with
    that in the request's words. ``whole`` makes the answer of a finished reply,
    ``parts`` what each event of a reply adds to a stream; both are given the
    request. ``last`` ends a stream.
    """

    body: Callable[[Body], Body]
    fault: Callable[[ApiError, Body], ApiError]
    whole: Callable[[Reply, Body], Body]
    parts: Callable[[Reply, Body], Callable[[Mapping[str, Any]], Iterable[bytes]]]
    last: bytes = b""


async def projected(call: Call, form: Form) -> Any:
    """Answer a request: in one piece, or as a stream."""
    body = await call.body()
    made = form.body(body)
    try:
        reply, headers = await call.service.begin(made, call.tenant)
    except ApiError as error:
        raise form.fault(error, body) from error
    if reply.ask.stream:
        return streamed(call.service, _stream(reply, form, body), headers)
    await whole(call, reply)
    return answer(form.whole(reply, body), headers=headers)


async def _stream(reply: Reply, form: Form, body: Body) -> AsyncGenerator[bytes, None]:
    parts = form.parts(reply, body)
    async with aclosing(steady(reply)) as batches:
        async for events in batches:
            yield b"".join(part for event in events for part in parts(event))
    if form.last:
        yield form.last
