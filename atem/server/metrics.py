"""What the server counts, for Prometheus.

Rules: a registry of its own; no label holds anything that a client chose, but
for the route that it found.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..errors import EngineError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..responses.output.usage import Usage
    from .reply import Reply
    from .slots import Slots

TOKEN_SECONDS: Final = (0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger("atem.server")


class Metrics:
    """The counters of one server."""

    def __init__(self, slots: Slots) -> None:
        self.registry = CollectorRegistry()
        about: dict[str, Any] = {"namespace": "atem", "registry": self.registry}
        self._requests = Counter("requests", "HTTP requests.", ["route", "status"], **about)
        self._responses = Counter("responses", "Responses, by status.", ["status"], **about)
        self._tokens = Counter(
            "tokens", "Tokens: input, cached, output, reasoning.", ["kind"], **about
        )
        self._dropped = Counter("dropped_tools", "Hosted tools not offered.", **about)
        self._rejected = Counter("rejected_calls", "Calls not passed on.", **about)
        self._problems = Counter(
            "parser_problems", "What the model wrote otherwise than it should.", ["code"], **about
        )
        self._engine = Counter("engine_errors", "Errors of the engine.", ["type"], **about)
        self._errors = Counter("errors", "Errors of the server itself.", **about)
        self._duration = Histogram(
            "response_seconds", "From request to end.", buckets=SECONDS, **about
        )
        self._first = Histogram(
            "first_output_seconds", "From request to first output.", buckets=SECONDS, **about
        )
        self._each = Histogram(
            "token_seconds",
            "From one token to the next, a mean for each response.",
            buckets=TOKEN_SECONDS,
            **about,
        )
        self._streams = Gauge("streams", "Streams that are open.", ["kind"], **about)
        self._stored = Gauge("store_bytes", "Bytes in the store.", **about)
        Gauge("running", "Generations running.", **about).set_function(lambda: slots.running)
        Gauge("waiting", "Requests waiting.", **about).set_function(lambda: slots.waiting)

    def request(self, route: str, status: int) -> None:
        """A request was answered."""
        self._requests.labels(route, str(status)).inc()

    def first_output(self, reply: Reply, now: float) -> None:
        """The first event with something of the answer in it, at ``now`` (monotonic)."""
        self._first.observe(now - reply.started)

    def stream(self, kind: str) -> AbstractContextManager[object]:
        """While a stream of a kind ("sse", "websocket") is open."""
        return self._streams.labels(kind).track_inprogress()

    def answered(self, reply: Reply) -> None:
        """A response came to its end."""
        now, builder = time.monotonic(), reply.builder
        self._responses.labels(reply.response["status"]).inc()
        self._duration.observe(now - reply.started)
        if reply.first is not None and builder.usage.output > 1:
            self._each.observe((now - reply.first) / (builder.usage.output - 1))
        self._dropped.inc(len(reply.ask.tools.dropped))
        self._rejected.inc(len(builder.rejections))
        for code, count in builder.problems.items():
            self._problems.labels(code).inc(count)
        self.engine_error(builder.error)
        self._count(builder.usage)

    def engine_error(self, error: BaseException | None) -> None:
        """A response ended in ``error``, or was refused because of it; one of the engine counts.

        The log has its kind alone: its text may quote what a server behind said.
        """
        if isinstance(error, EngineError):
            log.warning("the engine failed: %s", type(error).__name__)
            self._engine.labels(type(error).__name__).inc()

    def _count(self, usage: Usage) -> None:
        for kind in ("input", "cached", "output", "reasoning"):
            self._tokens.labels(kind).inc(getattr(usage, kind))

    def error(self) -> None:
        """Something broke in the server."""
        self._errors.inc()

    def text(self, stored: int) -> bytes:
        """All of it, as Prometheus reads it."""
        self._stored.set(stored)
        return generate_latest(self.registry)
