"""Spans of responses, read with OpenTelemetry's own SDK and the names of its conventions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from websockets.sync.client import connect

from atem.errors import RemoteError
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    HELLO,
    LONG,
    THOUGHT,
    Broken,
    block,
    invoke,
    paced,
    raw_request,
    running,
    wait,
)

KNOWN = {
    value
    for module in (gen_ai_attributes, error_attributes, server_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


@pytest.fixture
def spans(monkeypatch):
    """What is exported, by a provider that is set up as an application would."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter.get_finished_spans


def only(spans):
    assert wait(lambda: len(spans()) == 1, 3), spans()
    return spans()[0]


def test_a_response_is_a_span_with_the_numbers_of_its_usage(spans):
    with running(lambda request: THOUGHT + HELLO) as server:
        response = server.create(temperature=0.5, max_output_tokens=99, conversation=None).json()
        span = only(spans)
    usage, found = response["usage"], span.attributes
    assert span.name == "chat scripted"
    assert span.kind == trace.SpanKind.SERVER
    assert span.parent is None
    assert found["gen_ai.response.id"] == response["id"]
    assert found["gen_ai.request.model"] == found["gen_ai.response.model"] == "scripted"
    assert found["gen_ai.request.temperature"] == 0.5
    assert found["gen_ai.request.max_tokens"] == 99
    assert found["gen_ai.usage.input_tokens"] == usage["input_tokens"]
    assert found["gen_ai.usage.output_tokens"] == usage["output_tokens"]
    reasoning = usage["output_tokens_details"]["reasoning_tokens"]
    assert found["gen_ai.usage.reasoning.output_tokens"] == reasoning > 0
    assert found["gen_ai.response.finish_reasons"] == ("stop",)
    assert 0 < found["gen_ai.response.time_to_first_chunk"] < 20
    assert found["server.address"] == "127.0.0.1"
    assert span.status.status_code == trace.StatusCode.UNSET


def test_every_name_is_one_of_the_conventions(spans):
    with running(Broken(RemoteError("It is away."))) as server:
        server.create(conversation=server.http.post("/v1/conversations", json={}).json()["id"])
        assert set(only(spans).attributes) <= KNOWN


def test_a_call_ends_it_as_a_tool_call_and_a_limit_as_a_length(spans):
    turn = block(invoke("known"), to="tool") + "<|eot|>"
    tool = {"type": "function", "name": "known", "parameters": {"type": "object"}}
    with running([turn, LONG]) as server:
        server.create(tools=[tool])
        server.create(max_output_tokens=8)
        assert wait(lambda: len(spans()) == 2)
    reasons = [span.attributes["gen_ai.response.finish_reasons"] for span in spans()]
    assert reasons == [("tool_call",), ("length",)]


@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_is_an_error_by_its_code(spans, stream):
    with running(Broken(RemoteError("It is away."))) as server:
        server.create(stream=stream)
        span = only(spans)
    assert span.attributes["error.type"] == "server_error"
    assert span.attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert span.status.status_code == trace.StatusCode.ERROR


def test_what_the_engine_refuses_ends_its_span_too(spans):
    class Away(ScriptedEngine):
        def generate(self, request):
            raise RemoteError("It is away.")

    with running(Away([])) as server:
        assert server.create().status_code == 502
        assert only(spans).attributes["error.type"] == "refused"


def test_a_client_that_leaves_ends_it_and_that_is_no_error(spans):
    with running(paced(lambda request: LONG, rate=100)) as server:
        raw_request(server).close()
        span = only(spans)
    assert span.attributes["gen_ai.response.finish_reasons"] == ("cancelled",)
    assert "error.type" not in span.attributes


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"background": True}])
def test_it_goes_on_in_the_trace_that_the_request_names(spans, fields):
    with running(lambda request: HELLO) as server:
        body = {"model": "scripted", "input": "Hi", **fields}
        server.http.post("/v1/responses", json=body, headers=TRACEPARENT)
        span = only(spans)
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT


def test_a_web_socket_s_responses_go_on_in_the_trace_of_its_handshake(spans):
    with running(lambda request: HELLO) as server:
        url = f"ws://127.0.0.1:{server.port}/v1/responses"
        with connect(url, proxy=None, additional_headers=TRACEPARENT) as socket:
            socket.send(json.dumps({"type": "response.create", "model": "scripted", "input": "Hi"}))
            span = only(spans)
    assert f"{span.context.trace_id:032x}" == TRACE


def test_spans_of_the_engine_are_inside_it(spans):
    class Traced(ScriptedEngine):
        def generate(self, request):
            with trace.get_tracer("engine").start_as_current_span("begin"):
                yield from super().generate(request)

    with running(Traced(lambda request: HELLO)) as server:
        server.create()
        assert wait(lambda: len(spans()) == 2)
    inner, outer = sorted(spans(), key=lambda span: span.name != "begin")
    assert inner.parent.span_id == outer.context.span_id


def test_nothing_that_anybody_said_is_in_it(spans):
    with running(lambda request: " to=user<|message|>A secret.<|eot|>") as server:
        server.create("The secret?", instructions="A secret.", metadata={"it": "is secret"})
        assert "secret" not in only(spans).to_json()


def test_without_a_provider_no_span_is_made(monkeypatch):
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    made = []
    monkeypatch.setattr(trace, "get_tracer", lambda *_: made.append(1))
    with running(lambda request: HELLO) as server:
        assert server.create().status_code == 200
    assert made == []


def test_without_the_package_the_server_works():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from atem.server import tracing, app\n"
        "assert not tracing.is_on()\n"
        "with tracing.continued({}): pass\n"
        "assert tracing.begun(None) is None\n"
        "tracing.ended(None, None)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
