"""Every answer is JSON in the API's form, whatever was asked, and nothing of a text is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from contextlib import nullcontext

import pytest
from starlette.routing import Route

from atem.responses.faults import ApiError
from atem.server.store.network import StoreUnreachable
from tests.server.running import HELLO, LONG, MODEL, paced, running, wait

KEY = "a-key-of-a-client"
OTHER = "a-key-of-another"


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO, max_body=100_000) as server:
        yield server


def error_of(answered):
    body = answered.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert answered.headers["x-request-id"]
    return body["error"]


def post(server, content, path="/v1/responses", **headers):
    return server.http.post(
        path, content=content, headers={"content-type": "application/json", **headers}
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/", 200),
        ("PUT", "/v1/responses", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/responses/resp_none", 404),
        ("DELETE", "/v1/responses/resp_none", 404),
        ("GET", "/v1/responses/resp_none/input_items", 404),
        ("GET", "/v1/models/another", 404),
        ("GET", "/v1/%00%ff", 404),
    ],
)
def test_paths_and_methods_that_are_none_are_told_in_json(served, method, path, status):
    answered = served.http.request(method, path)
    assert answered.status_code == status
    if status >= 400:
        assert error_of(answered)["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", ["/", "/health", "/ready"])
def test_head_is_answered_as_get_is_without_the_body(served, path):
    head, whole = served.http.head(path), served.http.get(path)
    assert head.status_code == whole.status_code == 200
    assert head.content == b""
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]
    assert head.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v1/responses", "POST"), ("/v1/responses/x", "DELETE, GET"), ("/v1/messages", "POST")],
)
def test_a_method_that_a_path_has_not_is_told_with_all_that_it_has(served, path, methods):
    answered = served.http.put(path)
    assert answered.headers["allow"] == methods
    assert f"There is no PUT {path} here, but {methods}." in answered.text


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {}, 400),
        (b"not json", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"[]", {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-type": "multipart/form-data"}, 415),
        (b"{}", {"content-encoding": "zstd"}, 415),
        (b" " * 100_001, {}, 413),
        (json.dumps({"model": "other", "input": "x"}).encode(), {}, 404),
        (json.dumps({"model": MODEL}).encode(), {}, 400),
        (json.dumps({"model": MODEL, "input": 5}).encode(), {}, 400),
    ],
)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_bodies_that_are_none_are_told_in_json(served, content, headers, status, path):
    answered = post(served, content, path, **headers)
    assert answered.status_code == (400 if status == 404 and "chat" in path else status)
    assert error_of(answered)["message"]


FINAL = {400, 401, 403, 404, 405, 413, 415, 422}


@pytest.mark.parametrize(
    ("status", "asked", "headers"),
    [
        (400, "POST /v1/responses", {"content-type": "application/json"}),
        (401, "GET /v1/models", {}),
        (403, "GET /v1/models", {"host": "evil.example"}),
        (404, "GET /v1/responses/resp_none", {}),
        (404, "GET /v1/nothing", {}),
        (405, "PUT /v1/responses", {}),
        (
            413,
            "POST /v1/responses",
            {"content-type": "application/json", "content-length": "200000"},
        ),
        (415, "POST /v1/responses", {"content-type": "text/plain"}),
    ],
)
def test_what_another_try_does_not_mend_says_so(served, status, asked, headers):
    method, path = asked.split(" ")
    body = b" " * int(headers.get("content-length", 1))
    content = None if method == "GET" else body
    keys = (KEY,) if status == 401 else ()
    with running(lambda request: HELLO, api_key=keys) if keys else nullcontext(served) as server:
        answered = server.http.request(method, path, headers=headers, content=content)
    assert answered.status_code == status
    assert answered.headers["x-should-retry"] == "false"
    assert "retry-after" not in answered.headers


def test_of_every_status_of_an_error_only_the_final_ones_forbid_another_try():
    async def refusing(request):
        raise ApiError("No.", status=int(request.path_params["status"]))

    found = {}
    with running(lambda request: HELLO) as server:
        server.app.router.routes.insert(0, Route("/refused/{status}", refusing))
        for status in (*FINAL, 408, 409, 429, 500, 502, 503, 504):
            answered = server.http.get(f"/refused/{status}")
            assert answered.status_code == status
            assert ("retry-after" in answered.headers) is (status in (429, 503))
            found[status] = answered.headers.get("x-should-retry")
    assert {status for status, said in found.items() if said == "false"} == FINAL
    assert set(found.values()) == {"false", None}


def test_a_body_that_does_not_say_how_long_it_is_is_cut_at_the_limit(served):
    def parts():
        for _ in range(200):
            yield b" " * 1000

    assert post(served, parts()).status_code == 413


def test_errors_of_messages_have_the_form_of_that_api(served):
    for content, status, kind in (
        (b"{}", 400, "invalid_request_error"),
        (b" " * 100_001, 413, "request_too_large"),
        (b"x", 400, "invalid_request_error"),
    ):
        answered = post(served, content, "/v1/messages")
        assert answered.status_code == status
        assert answered.json()["type"] == "error"
        assert answered.json()["error"]["type"] == kind


def test_a_fault_of_ours_is_a_500_without_a_word_of_what_broke():
    async def broken(request):
        raise RuntimeError("the secret of the house")

    with running(lambda request: HELLO) as server:
        server.app.router.routes.insert(0, Route("/broken", broken))
        answered = server.http.get("/broken")
    assert answered.status_code == 500
    assert error_of(answered)["type"] == "server_error"
    assert "secret" not in answered.text


def test_a_sane_request_id_is_echoed_and_another_is_replaced(served):
    for given, kept in (("abc-1", True), ("x" * 101, False), ("a b", False)):
        answered = served.http.get("/health", headers={"x-request-id": given})
        assert (answered.headers["x-request-id"] == given) is kept
        assert answered.headers["openai-processing-ms"].isdigit()


def test_logs_hold_no_text_of_a_conversation_and_no_key(caplog):
    with caplog.at_level(logging.DEBUG), running(lambda request: HELLO, api_key=(KEY,)) as server:
        server.http.headers["authorization"] = f"Bearer {KEY}"
        server.create("the word is sesame", instructions="say sesame")
        server.create("sesame", tools="sesame")
        server.http.get("/v1/responses/sesame?stream=sesame")
        server.http.get("/sesame")
        post(server, b"sesame")
    ours = [
        each.getMessage() for each in caplog.records if each.name.startswith(("atem", "uvicorn"))
    ]
    assert any("POST /v1/responses 200" in line for line in ours)
    assert not any("sesame" in line or KEY in line or "Hello there" in line for line in ours)


def test_every_route_but_those_about_the_server_itself_wants_the_key():
    with running(lambda request: HELLO, api_key=(KEY,)) as server:
        for path in ("/health", "/ready", "/version", "/"):
            assert server.http.get(path).status_code == 200
        for method, path in (
            ("POST", "/v1/responses"),
            ("GET", "/v1/responses/x"),
            ("DELETE", "/v1/responses/x"),
            ("POST", "/v1/responses/x/cancel"),
            ("GET", "/v1/responses/x/input_items"),
            ("POST", "/v1/responses/input_tokens"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/scripted"),
            ("POST", "/v1/chat/completions"),
            ("GET", "/metrics"),
        ):
            answered = server.http.request(method, path)
            assert answered.status_code == 401, path
            assert error_of(answered)["code"] == "invalid_api_key"
        refused = server.http.post("/v1/messages")
        assert (refused.status_code, refused.json()["error"]["type"]) == (
            401,
            "authentication_error",
        )


def test_what_one_key_stores_another_can_not_see_continue_or_delete():
    with running(lambda request: HELLO, api_key=(KEY, OTHER)) as server:
        server.http.headers["authorization"] = f"Bearer {KEY}"
        made = server.create().json()["id"]
        server.http.headers["authorization"] = f"Bearer {OTHER}"
        assert server.http.get(f"/v1/responses/{made}").status_code == 404
        assert server.http.delete(f"/v1/responses/{made}").status_code == 404
        refused = server.create(previous_response_id=made)
        assert refused.json()["error"]["code"] == "previous_response_not_found"
        server.http.headers["authorization"] = f"Bearer {KEY}"
        assert server.http.get(f"/v1/responses/{made}").status_code == 200


def test_a_full_queue_is_a_429_with_retry_after_and_who_waits_is_told_it_is_queued():
    with running(paced(lambda request: LONG, rate=20), running=1, queue=1) as server:
        made = [server.create(background=True).json() for _ in range(2)]
        assert [each["status"] for each in made] == ["queued", "queued"]
        for stream in (True, False):
            refused = server.create(stream=stream)
            assert refused.status_code == 429
            assert refused.headers["retry-after"].isdigit()
            assert refused.headers["retry-after-ms"].isdigit()
            assert error_of(refused)["code"] == "rate_limit_exceeded"
        server.http.post(f"/v1/responses/{made[0]['id']}/cancel")
        assert server.create(background=True).status_code == 200


def test_browsers_may_not_ask_from_other_pages_unless_they_are_named(served):
    ask = {"origin": "https://app.example", "access-control-request-method": "POST"}
    assert (
        "access-control-allow-origin"
        not in served.http.options("/v1/responses", headers=ask).headers
    )
    with running(lambda request: HELLO, cors_origin=("https://app.example",)) as server:
        allowed = server.http.options("/v1/responses", headers=ask)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in allowed.headers
        stranger = server.http.options(
            "/v1/responses", headers=ask | {"origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in stranger.headers


@pytest.mark.parametrize(
    ("raised", "status"), [(RuntimeError("a bug"), 500), (StoreUnreachable("away"), 503)]
)
def test_a_page_may_read_an_error_of_ours_and_the_headers_that_it_needs(raised, status):
    async def broken(request):
        raise raised

    page = {"origin": "https://app.example"}
    with running(lambda request: HELLO, cors_origin=tuple(page.values())) as server:
        server.app.router.routes.insert(0, Route("/broken", broken))
        for path, expected in (("/broken", status), ("/v1/models", 200), ("/v1/none", 404)):
            answered = server.http.get(path, headers=page)
            assert answered.status_code == expected
            assert answered.headers["access-control-allow-origin"] == page["origin"]
            exposed = answered.headers["access-control-expose-headers"].split(", ")
            assert {"x-request-id", "openai-processing-ms", "retry-after"} <= set(exposed)
            named = {name for name in answered.headers if name.startswith(("x-", "retry-"))}
            assert named <= set(exposed)


def test_a_head_without_end_is_refused(served):
    with socket.create_connection(("127.0.0.1", served.port), 10) as link:
        link.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"x-long: " + b"a" * 200_000)
        assert link.recv(100).startswith(b"HTTP/1.1 400") or wait(lambda: link.recv(100) == b"")


def test_models_are_listed_under_the_names_they_answer_to():
    with running(lambda request: HELLO, model_name=("muse", "claude-*")) as server:
        listed = server.http.get("/v1/models").json()
        assert [model["id"] for model in listed["data"]] == ["muse"]
        assert listed["data"][0]["context_length"] == server.engine.info.context
        assert server.http.get("/v1/models/claude-x").json()["id"] == "claude-x"
        for name, status in (("muse", 200), ("claude-opus", 200), ("scripted", 404)):
            answered = server.create(model=name)
            assert answered.status_code == status
            assert status == 404 or answered.json()["model"] == name


def test_metrics_count_requests_responses_and_tokens_and_may_be_closed():
    with running(lambda request: HELLO, api_key=(KEY,)) as server:
        server.http.headers["authorization"] = f"Bearer {KEY}"
        usage = server.create().json()["usage"]
        text = server.http.get("/metrics").text
    assert 'atem_responses_total{status="completed"} 1.0' in text
    assert f'atem_tokens_total{{kind="output"}} {float(usage["output_tokens"])}' in text
    assert 'atem_requests_total{route="/v1/responses",status="200"} 1.0' in text
    with running(lambda request: HELLO, metrics="off") as server:
        assert server.http.get("/metrics").status_code == 404
    with running(lambda request: HELLO, metrics="open", api_key=(KEY,)) as server:
        assert server.http.get("/metrics").status_code == 200


def test_input_items_come_in_pages():
    said = [{"role": "user", "content": f"{number}"} for number in range(5)]
    with running(lambda request: HELLO) as server:
        made = server.create(said).json()["id"]
        path = f"/v1/responses/{made}/input_items"
        first = server.http.get(path, params={"limit": 2}).json()
        rest = server.http.get(path, params={"limit": 3, "after": first["last_id"]}).json()
        up = server.http.get(path, params={"order": "asc"}).json()
        refused = [
            server.http.get(path, params=query).status_code
            for query in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "none"})
        ]
    texts = [item["content"][0]["text"] for item in [*first["data"], *rest["data"]]]
    assert texts == ["4", "3", "2", "1", "0"]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert [item["content"][0]["text"] for item in up["data"]] == ["0", "1", "2", "3", "4"]
    assert refused == [400] * 4


def test_the_tokens_of_an_input_are_those_that_are_then_used(served):
    counted = served.http.post(
        "/v1/responses/input_tokens", json={"model": MODEL, "input": "Hi you"}
    )
    assert counted.json() == {
        "object": "response.input_tokens",
        "input_tokens": served.create("Hi you").json()["usage"]["input_tokens"],
    }
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi you"}]}
    messages = served.http.post("/v1/messages/count_tokens", json=body).json()
    assert messages == {"input_tokens": counted.json()["input_tokens"]}


def test_a_chain_of_fifty_holds_every_item_and_a_missing_link_is_an_error():
    with running(lambda request: HELLO) as server:
        ids = [None]
        for _ in range(50):
            ids.append(server.create("On.", previous_response_id=ids[-1]).json()["id"])
        prompt = server.engine.requests[-1].prompt.text()
        assert prompt.count("Hello there.") == 49
        server.http.delete(f"/v1/responses/{ids[25]}")
        broken = server.create(previous_response_id=ids[-1])
        assert broken.json()["error"]["code"] == "previous_response_not_found"


def test_an_item_is_named_by_its_id_and_an_unknown_one_is_not_found():
    with running(lambda request: HELLO) as server:
        item = server.create("Hi").json()["output"][0]["id"]
        known = server.create(
            [{"type": "item_reference", "id": item}, {"role": "user", "content": "?"}]
        )
        unknown = server.create([{"type": "item_reference", "id": "msg_none"}])
    assert known.status_code == 200
    assert unknown.status_code == 404


def test_store_false_keeps_nothing_and_store_off_says_so_of_what_is_asked_for_later():
    with running(lambda request: HELLO) as server:
        made = server.create(store=False).json()["id"]
        assert server.http.get(f"/v1/responses/{made}").status_code == 404
        assert server.call(server.service.store.size) == 0
    with running(lambda request: HELLO, store="off") as server:
        made = server.create().json()["id"]
        refused = server.create(previous_response_id=made)
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            400,
            "previous_response_not_found",
        )


def test_a_lone_half_of_a_character_harms_nobody(served):
    answered = post(served, b'{"model": "scripted", "input": "a\\ud800b"}')
    assert answered.status_code == 200
    assert served.http.get(f"/v1/responses/{answered.json()['id']}/input_items").status_code == 200


def test_a_server_that_has_no_loop_yet_can_be_made_and_thrown_away():
    from atem.server.app import create_app
    from atem.server.settings import Settings
    from atem.testing.scripted import ScriptedEngine

    app = create_app(ScriptedEngine([HELLO]), Settings(store="memory"))
    asyncio.run(app.state.service.close())


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head(served):
    took = []
    for _ in range(10):
        began = time.monotonic()
        served.http.get("/health")
        took.append(time.monotonic() - began)
    assert sorted(took)[5] < 0.035  # a delayed acknowledgement takes 0.04
