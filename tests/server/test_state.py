"""What is kept: over a restart, for how long, and for whom."""

from __future__ import annotations

import time

import pytest

from atem.server import leases
from atem.server.store import Bounds
from atem.server.store.memory import MemoryStore
from atem.server.store.sqlite import SQLiteStore
from tests.server.running import HELLO, LONG, ended, follow, paced, running, status, types, wait

KEYS = ("first-key", "second-key")


def error(answered):
    return answered.status_code, answered.json()["error"]["code"]


def test_a_restart_keeps_responses_conversations_and_logs_and_they_go_on(tmp_path):
    path = tmp_path / "s.db"
    with running(lambda request: HELLO, store=SQLiteStore(path)) as server:
        talk = server.http.post("/v1/conversations", json={}).json()["id"]
        first = server.create("One?").json()
        server.create("Two?", conversation=talk)
        logged = ended(server, server.create(background=True).json()["id"])["id"]
        events = follow(server, logged)
    with running(lambda request: HELLO, store=SQLiteStore(path)) as server:
        assert server.http.get(f"/v1/responses/{first['id']}").json() == first
        assert server.create(previous_response_id=first["id"]).status_code == 200
        assert "One?" in server.engine.requests[-1].prompt.text()
        assert server.create(conversation=talk).status_code == 200
        assert "Two?" in server.engine.requests[-1].prompt.text()
        assert follow(server, logged) == events


def test_what_was_dropped_for_its_age_is_not_found_and_can_not_be_gone_on_from():
    now = [time.time()]
    store = MemoryStore(Bounds(seconds=60), clock=lambda: now[0])
    with running(lambda request: HELLO, store=store) as server:
        made = server.create().json()["id"]
        assert server.http.get(f"/v1/responses/{made}").status_code == 200
        now[0] += 61
        server.call(store.expire)
        assert server.http.get(f"/v1/responses/{made}").status_code == 404
        refused = server.create(previous_response_id=made)
        assert error(refused) == (400, "previous_response_not_found")


def test_a_log_that_is_not_kept_any_more_is_told_and_the_response_stays():
    now = [time.time()]
    store = MemoryStore(Bounds(log_seconds=600), clock=lambda: now[0])
    with running(lambda request: HELLO, store=store) as server:
        made = ended(server, server.create(background=True).json()["id"])["id"]
        now[0] += 601
        server.call(store.expire)
        refused = server.http.get(f"/v1/responses/{made}?stream=true")
        assert refused.status_code == 400
        assert "not kept" in refused.json()["error"]["message"]
        assert status(server, made) == "completed"


def test_what_is_too_old_is_dropped_also_after_a_store_failed_to_do_it_once(monkeypatch):
    class Failing(MemoryStore):
        fails = 0

        async def expire(self):
            if self.fails:
                self.fails -= 1
                raise ConnectionError
            return await super().expire()

    monkeypatch.setattr(leases, "EXPIRE_SECONDS", 0.02)
    now = [time.time()]
    store = Failing(Bounds(seconds=60), clock=lambda: now[0])
    with running(lambda request: HELLO, store=store) as server:
        server.create()
        store.fails = 1
        assert wait(lambda: not store.fails)
        assert server.call(store.size) > 0
        now[0] += 61
        assert wait(lambda: server.call(store.size) == 0)


@pytest.fixture(scope="module")
def shared():
    """A server of two tenants; what the first one has: a response and a conversation."""
    with running(paced(lambda request: LONG, rate=50), api_key=KEYS) as server:
        server.http.headers["authorization"] = f"Bearer {KEYS[0]}"
        made = server.create(background=True).json()["id"]
        talk = server.http.post("/v1/conversations", json={}).json()["id"]
        server.http.headers["authorization"] = f"Bearer {KEYS[1]}"
        yield server, made, talk


@pytest.mark.parametrize(
    "asked",
    [
        "GET /responses/{made}",
        "GET /responses/{made}?stream=true",
        "GET /responses/{made}/input_items",
        "POST /responses/{made}/cancel",
        "DELETE /responses/{made}",
        "GET /conversations/{talk}",
        "GET /conversations/{talk}/items",
        "DELETE /conversations/{talk}",
    ],
)
def test_what_another_tenant_has_is_not_found(shared, asked):
    server, made, talk = shared
    method, path = asked.format(made=made, talk=talk).split(" ")
    assert server.http.request(method, f"/v1{path}").status_code == 404
    assert server.service.replies  # it is still being written


def test_nobody_goes_on_from_what_another_tenant_has(shared):
    server, made, talk = shared
    refused = server.create(previous_response_id=made)
    assert error(refused) == (400, "previous_response_not_found")
    assert server.create(conversation=talk).status_code == 404


def test_a_reader_that_takes_nothing_holds_up_neither_the_writer_nor_another_reader():
    with running(lambda request: LONG) as server:
        made = server.create(background=True).json()["id"]
        where = f"/v1/responses/{made}?stream=true"
        with server.http.stream("GET", where) as slow:
            assert ended(server, made)["status"] == "completed"
            whole = follow(server, made)
            assert slow.read().count(b"event: ") == len(whole)
    assert types(whole)[-1] == "completed"
    assert wait(lambda: not server.service.replies)
