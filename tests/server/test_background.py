"""Responses in the background: polled, followed from any place, cancelled, and after a crash."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from atem.errors import EngineError
from atem.server.store import Record
from atem.server.store.memory import MemoryStore
from atem.server.store.sqlite import SQLiteStore
from tests.server.running import (
    HELLO,
    LONG,
    MODEL,
    Broken,
    Watched,
    ended,
    follow,
    paced,
    read_events,
    running,
    status,
    types,
    wait,
)


def test_it_is_answered_at_once_as_queued_and_found_until_it_is_done():
    with running(paced(lambda request: HELLO, rate=40)) as server:
        began = time.monotonic()
        made = server.create(background=True)
        assert time.monotonic() - began < 0.5
        assert made.status_code == 200
        response = made.json()
        assert response["status"] == "queued"
        assert response["output"] == []
        assert status(server, response["id"]) in ("queued", "in_progress")
        done = ended(server, response["id"])
    assert done["status"] == "completed"
    assert done["output"][0]["content"][0]["text"] == "Hello there."


class Reluctant(MemoryStore):
    """Takes its time for the first record, and then fails."""

    asked = 0

    async def put(self, record, events=()):
        await asyncio.sleep(0.2)
        self.asked = len(self.engine.requests)
        raise ConnectionError("It is full.")


def test_the_model_is_asked_for_nothing_before_it_is_stored_and_then_never_if_it_cannot_be():
    store = Reluctant()
    with running(lambda request: HELLO, store=store) as server:
        store.engine = server.engine
        assert server.create(background=True).status_code == 500
        assert wait(lambda: not server.service.replies)
        assert (store.asked, server.engine.requests) == (0, [])
        assert server.service.slots.running == 0


def test_the_openai_sdk_polls_and_cancels_it():
    with running(paced(lambda request: LONG, rate=100)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        with client:
            made = client.responses.create(model=MODEL, input="Hi", background=True)
            assert wait(lambda: client.responses.retrieve(made.id).status == "in_progress")
            time.sleep(0.3)
            cancelled = client.responses.cancel(made.id)
            again = client.responses.cancel(made.id)
    assert cancelled.status == again.status == "cancelled"
    assert cancelled.output[0].status == "incomplete"
    assert cancelled.output_text == again.output_text != ""


def test_a_cancel_stops_the_engine_at_once_also_while_it_waits():
    engine = Watched()
    with running(engine, running=1) as server:
        first = server.create(background=True).json()["id"]
        second = server.create(background=True).json()["id"]
        assert wait(lambda: engine.steps > 5)
        waiting = server.http.post(f"/v1/responses/{second}/cancel").json()
        assert (waiting["status"], waiting["output"]) == ("cancelled", [])
        assert engine.closed == []
        began = time.monotonic()
        assert server.http.post(f"/v1/responses/{first}/cancel").json()["status"] == "cancelled"
        assert engine.closed[0] - began < 0.2
    assert len(engine.requests) == 1


def test_only_a_background_response_can_be_cancelled_and_a_finished_one_stays_as_it_is():
    with running(lambda request: HELLO) as server:
        plain = server.create().json()["id"]
        assert server.http.post(f"/v1/responses/{plain}/cancel").status_code == 400
        made = ended(server, server.create(background=True).json()["id"])
        again = server.http.post(f"/v1/responses/{made['id']}/cancel")
        assert again.json() == made
        assert server.http.post("/v1/responses/resp_none/cancel").status_code == 404


def test_its_stream_is_followed_live_and_replayed_from_every_number():
    with running(paced(lambda request: HELLO, rate=100)) as server:
        live = server.events(background=True)
        response_id = live[0]["response"]["id"]
        assert types(live)[-1] == "completed"
        assert [event["sequence_number"] for event in live] == list(range(len(live)))
        for place in range(-1, len(live)):
            assert follow(server, response_id, place) == live[place + 1 :]


def test_it_goes_on_when_its_reader_leaves_and_several_read_it_together():
    with running(paced(lambda request: HELLO, rate=40)) as server:
        body = {"model": MODEL, "input": "Hi", "stream": True, "background": True}
        with server.http.stream("POST", "/v1/responses", json=body) as answered:
            first = next(answered.iter_text())
        response_id = read_events(first.encode())[0]["response"]["id"]
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(lambda _: follow(server, response_id), range(4)))
        assert read[0] == read[1] == read[2] == read[3]
        assert types(read[0])[-1] == "completed"
        assert status(server, response_id) == "completed"


def test_one_that_was_not_in_the_background_can_not_be_streamed_again():
    with running(lambda request: HELLO) as server:
        made = server.create().json()["id"]
        refused = server.http.get(f"/v1/responses/{made}?stream=true")
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "stream"


@pytest.mark.parametrize("number", ["x", "-2", "1.5", "99999999999999999"])
def test_a_place_that_is_no_number_is_refused(number):
    with running(lambda request: HELLO) as server:
        made = server.create(background=True).json()["id"]
        refused = server.http.get(f"/v1/responses/{made}?stream=true&starting_after={number}")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "starting_after")


def test_it_needs_a_store():
    with running(lambda request: HELLO, store="off") as server:
        for fields in ({}, {"store": False}):
            refused = server.create(background=True, **fields)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "background")


def test_one_that_fails_says_so():
    with running(Broken(EngineError("the device is gone"))) as server:
        made = server.create(background=True).json()["id"]
        done = ended(server, made)
        assert done["status"] == "failed"
        assert done["error"]["code"] == "server_error"
        assert types(follow(server, made))[-1] == "failed"


def test_behind_the_last_event_nothing_follows_and_nobody_waits_for_it():
    with running(lambda request: HELLO) as server:
        made = ended(server, server.create(background=True).json()["id"])["id"]
        last = follow(server, made)[-1]["sequence_number"]
        began = time.monotonic()
        assert follow(server, made, last) == follow(server, made, last + 1) == []
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_whoever_follows_one_that_is_deleted_is_told_its_end(store, tmp_path):
    path = {"store_path": str(tmp_path / "store.db")} if store == "sqlite" else {}
    with running(Watched(), store=store, **path) as server, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            made = server.create(background=True).json()["id"]
            read = pool.submit(follow, server, made)
            assert wait(lambda made=made: server.call(has_output, server, made))
            server.call(server.service.store.delete, "", made)  # as another server does it
            events = read.result(10)
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert types(events)[-1] == "failed"


async def has_output(server, made):
    return bool(await server.service.store.read_events("", made, 5, 1))


def test_a_deleted_one_is_stopped_and_stays_deleted():
    engine = Watched()
    with running(engine) as server:
        made = server.create(background=True).json()["id"]
        assert wait(lambda: engine.steps > 5)
        gone = server.http.delete(f"/v1/responses/{made}").json()
        assert gone == {"id": made, "object": "response", "deleted": True}
        assert engine.closed
        assert server.http.get(f"/v1/responses/{made}").status_code == 404
        assert server.http.delete(f"/v1/responses/{made}").status_code == 404


def test_after_a_crash_what_was_open_has_failed_and_keeps_the_items_that_were_done(tmp_path):
    item = {"type": "message", "id": "msg_1", "status": "completed", "content": []}
    response = {
        "id": "resp_1",
        "status": "in_progress",
        "output": [item],
        "error": None,
        "background": True,
    }
    body = {"response": response, "input": [], "previous": None}
    log = [
        {"type": "response.created", "sequence_number": 0, "response": response},
        {"type": "response.output_item.done", "sequence_number": 1, "item": item},
    ]

    async def crash():
        store = SQLiteStore(tmp_path / "s.db", clock=lambda: time.time() - 60)
        await store.put(Record("", "resp_1", body, owner="gone"))
        await store.append_events("", "resp_1", log, "gone")
        await store.close()

    asyncio.run(crash())
    with running(lambda request: HELLO, store=SQLiteStore(tmp_path / "s.db")) as server:
        found = server.http.get("/v1/responses/resp_1").json()
        assert (found["status"], found["error"]["code"]) == ("failed", "server_error")
        assert found["output"] == [item]
        events = follow(server, "resp_1")
        assert types(events) == ["created", "output_item.done", "failed"]
        assert events[-1]["sequence_number"] == 2


def test_a_server_that_ends_fails_what_is_in_the_background_and_stores_that(tmp_path):
    path = tmp_path / "s.db"
    with running(paced(lambda request: LONG, rate=50), store=SQLiteStore(path)) as server:
        made = server.create(background=True).json()["id"]
        assert wait(lambda: status(server, made) == "in_progress")
    with running(lambda request: HELLO, store=SQLiteStore(path)) as server:
        found = server.http.get(f"/v1/responses/{made}").json()
        assert found["status"] == "failed"
        assert "shutting down" in found["error"]["message"]
