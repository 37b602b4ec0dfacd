"""Spans of responses, for OpenTelemetry, in the words of its GenAI conventions.

Rules: nothing is done unless the package opentelemetry-api is there and somebody
has set up where spans go; who that is and where they go is not ours. A span has
numbers and names, and nothing that anybody said.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .. import __version__

try:
    from opentelemetry import context, propagate, trace
except ImportError:
    trace = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Span
    from starlette.types import Scope

    from .reply import Reply

OPERATION: Final = "chat"
PROVIDER: Final = "atem"

FINISH: Final = {"incomplete": "length", "failed": "error"}
"""Why a response ended, by its status; one that was completed ended by a call or a stop."""

CALLS: Final = frozenset({"function_call", "custom_tool_call", "tool_search_call"})

REQUESTED: Final = {
    "gen_ai.request.temperature": "temperature",
    "gen_ai.request.top_p": "top_p",
    "gen_ai.request.max_tokens": "max_output_tokens",
    "gen_ai.request.frequency_penalty": "frequency_penalty",
    "gen_ai.request.presence_penalty": "presence_penalty",
}
"""Attributes, and the keys of the response object that they repeat."""


def is_on() -> bool:
    """Whether spans go anywhere."""
    return trace is not None and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider
    )


@contextmanager
def continued(scope: Scope) -> Iterator[None]:
    """While a request is handled: its spans belong to the trace that its headers name.

    One that is open already, of whoever traces HTTP here, goes before.
    """
    if not is_on() or trace.get_current_span().get_span_context().is_valid:
        yield
        return
    raw = scope.get("headers", ())
    headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in raw}
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def begun(reply: Reply) -> Span | None:
    """The span of a reply; None if nobody wants one.

    What its task does from here on, and its threads, belongs to it.
    """
    if not is_on():
        return None
    parent = trace.get_current_span().get_span_context()
    inside = parent.is_valid and not parent.is_remote
    settings, model = reply.service.settings, str(reply.ask.echo["model"])
    about: dict[str, str | int] = {
        "gen_ai.operation.name": OPERATION,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model,
        "server.address": settings.host,
        "server.port": settings.port,
    }
    span = trace.get_tracer(PROVIDER, __version__).start_span(
        f"{OPERATION} {model}",
        kind=trace.SpanKind.INTERNAL if inside else trace.SpanKind.SERVER,
        attributes=about,
    )
    context.attach(trace.set_span_in_context(span))
    return span if span.is_recording() else None


def ended(span: Span | None, reply: Reply) -> None:
    """``reply`` came to its end, or to none at all."""
    if span is None:
        return
    found = _found(reply) if reply.over else {"error.type": "refused"}
    span.set_attributes({name: value for name, value in found.items() if value is not None})
    if "error.type" in found:
        span.set_status(trace.StatusCode.ERROR)
    span.end()


def _found(reply: Reply) -> dict[str, Any]:
    response, usage = reply.response, reply.builder.usage
    found = {name: response.get(key) for name, key in REQUESTED.items()}
    found |= {
        "gen_ai.response.id": response["id"],
        "gen_ai.response.model": reply.service.engine.info.model,
        "gen_ai.response.finish_reasons": [_finish(response)],
        "gen_ai.conversation.id": reply.ask.conversation,
        "gen_ai.output.type": "text" if reply.ask.format.kind == "text" else "json",
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    if reply.first is not None:
        found["gen_ai.response.time_to_first_chunk"] = reply.first - reply.started
    if response["error"] is not None:
        found["error.type"] = response["error"]["code"]
    return found


def _finish(response: dict[str, Any]) -> str:
    status: str = response["status"]
    if status == "completed":
        called = any(item["type"] in CALLS for item in response["output"])
        return "tool_call" if called else "stop"
    return FINISH.get(status, status)
