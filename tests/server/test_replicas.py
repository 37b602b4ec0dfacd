"""Servers that share a store: each sees, continues and ends what the other writes."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from atem.server import conversations
from atem.server.store import Bounds, Record
from atem.server.store.sqlite import SQLiteStore
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    HELLO,
    LONG,
    Watched,
    ended,
    follow,
    paced,
    running,
    status,
    types,
    wait,
)


@contextmanager
def two(path, engine=None, other=lambda request: HELLO, **settings):
    """Two servers on one SQLite file."""
    engine = engine or paced(lambda request: HELLO, rate=40)
    with (
        running(engine, store=SQLiteStore(path), **settings) as one,
        running(other, store=SQLiteStore(path), **settings) as another,
    ):
        yield one, another


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with two(tmp_path_factory.mktemp("pair") / "s.db") as servers:
        yield servers


def numbers(events):
    return [event["sequence_number"] for event in events]


def test_c33_c42_whoever_reads_the_last_event_can_go_on_at_once_on_the_other_server(pair):
    one, other = pair
    for background in (True, False):
        last = one.events(background=background)[-1]
        assert last["type"] == "response.completed"
        again = other.create("And?", previous_response_id=last["response"]["id"])
        assert again.status_code == 200, again.text
        assert "Hello there." in other.engine.requests[-1].prompt.text()


def test_a_response_is_followed_live_on_the_other_server_from_every_number(pair):
    one, other = pair
    made = one.create(background=True).json()["id"]
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda place: follow(other, made, place), range(-1, 7)))
    whole = follow(one, made)
    assert types(whole)[-1] == "completed"
    assert numbers(whole) == list(range(len(whole)))
    assert read == [whole[place:] for place in range(8)]


def test_what_is_written_is_seen_on_the_other_server_item_by_item(pair):
    one, other = pair
    made = one.create(background=True).json()
    assert status(other, made["id"]) in ("queued", "in_progress")
    assert wait(lambda: status(other, made["id"]) == "in_progress")
    assert ended(other, made["id"]) == one.http.get(f"/v1/responses/{made['id']}").json()
    assert other.http.get(f"/v1/responses/{made['id']}/input_items").json()["data"]


def test_additions_to_a_conversation_by_both_servers_at_once_are_all_kept(pair):
    made = pair[0].http.post("/v1/conversations", json={}).json()["id"]

    def add(number):
        item = {"type": "message", "role": "user", "content": f"{number}"}
        where = f"/v1/conversations/{made}/items"
        return pair[number % 2].http.post(where, json={"items": [item]}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(add, range(24))) == {200}
        answers = list(pool.map(lambda server: server.create(conversation=made), pair))
    assert [answer.status_code for answer in answers] == [200, 200]
    kept = pair[1].http.get(f"/v1/conversations/{made}/items?limit=100").json()["data"]
    said = [item["content"][0]["text"] for item in kept]
    assert sorted(said, key=str) == sorted([*map(str, range(24)), *["Hi", "Hello there."] * 2])


def test_metadata_and_additions_changed_at_once_do_not_undo_each_other(pair):
    one, other = pair
    made = one.http.post("/v1/conversations", json={}).json()["id"]
    items = {"items": [{"type": "message", "role": "user", "content": "x"}]}
    where = f"/v1/conversations/{made}"
    with ThreadPoolExecutor(4) as pool:
        for number in range(8):
            asked = [
                pool.submit(one.http.post, where, json={"metadata": {"n": f"{number}"}}),
                pool.submit(other.http.post, f"{where}/items", json=items),
            ]
            assert {each.result().status_code for each in asked} == {200}
    assert other.http.get(where).json()["metadata"] == {"n": "7"}
    assert len(one.http.get(f"{where}/items?limit=100").json()["data"]) == 8


def test_a_cancel_on_the_other_server_ends_the_generation_and_keeps_what_was_written(tmp_path):
    engine = Watched()
    with two(tmp_path / "s.db", engine) as (one, other):
        made = one.create(background=True).json()["id"]
        assert wait(lambda: engine.steps > 20)
        asked = time.monotonic()
        cancelled = other.http.post(f"/v1/responses/{made}/cancel").json()
        assert engine.closed[0] - asked < 1
        assert cancelled["status"] == "cancelled"
        assert cancelled["output"][0]["status"] == "incomplete"
        assert one.http.get(f"/v1/responses/{made}").json() == cancelled
        assert other.http.post(f"/v1/responses/{made}/cancel").json() == cancelled


def test_a_delete_on_the_other_server_ends_the_generation_and_its_readers(tmp_path):
    engine = Watched()
    with two(tmp_path / "s.db", engine) as (one, other), ThreadPoolExecutor(2) as pool:
        made = one.create(background=True).json()["id"]
        readers = [pool.submit(follow, server, made) for server in (one, other)]
        assert wait(lambda: engine.steps > 20)
        assert other.http.delete(f"/v1/responses/{made}").json()["deleted"] is True
        assert wait(lambda: engine.closed, 2)
        for reader, server in zip(readers, (one, other), strict=True):
            assert types(reader.result(10))[-1] != "completed"
            assert server.http.get(f"/v1/responses/{made}").status_code == 404
        assert wait(lambda: not one.service.replies, 2)


def test_a_delete_on_the_other_server_ends_a_generation_that_is_silent(tmp_path):
    with two(tmp_path / "s.db", paced(lambda request: HELLO, first=30)) as (one, other):
        made = one.create(background=True).json()["id"]
        assert wait(lambda: status(other, made) == "in_progress")
        assert other.http.delete(f"/v1/responses/{made}").status_code == 200
        assert wait(lambda: one.service.slots.running == 0, 2)


def take_over(path, now):
    """Do as a server does at another's side, by a clock that is ahead."""

    async def scenario():
        store = SQLiteStore(path, clock=lambda: now)
        try:
            return await store.take_over("another")
        finally:
            await store.close()

    return asyncio.run(scenario())


def test_a_server_that_lost_a_response_writes_nothing_more_of_it(tmp_path):
    engine = Watched()
    with two(tmp_path / "s.db", engine) as (one, other):
        talk = one.http.post("/v1/conversations", json={}).json()["id"]
        made = one.create(background=True, conversation=talk).json()["id"]
        assert wait(lambda: engine.steps > 20)
        (taken,) = take_over(tmp_path / "s.db", time.time() + 100)
        assert taken.id == made
        before = len(other.call(read_log, other, made))
        assert wait(lambda: engine.closed, 2)
        assert wait(lambda: not one.service.jobs, 2)
        assert len(other.call(read_log, other, made)) == before
        assert status(one, made) == "in_progress"
        assert other.http.get(f"/v1/conversations/{talk}/items").json()["data"] == []


class Gated(ScriptedEngine):
    """Writes its last token only when it may."""

    def __init__(self):
        super().__init__(lambda request: HELLO)
        self.may = threading.Event()

    def generate(self, request):
        *steps, last = super().generate(request)
        yield from steps
        self.may.wait(20)
        yield last


def test_a_response_that_was_lost_just_before_its_end_adds_nothing_to_its_conversation(tmp_path):
    engine = Gated()
    with two(tmp_path / "s.db", engine) as (one, other):
        talk = one.http.post("/v1/conversations", json={}).json()["id"]
        made = one.create(background=True, conversation=talk).json()["id"]
        assert wait(lambda: "there." in str(other.call(read_log, other, made)))
        (taken,) = take_over(tmp_path / "s.db", time.time() + 100)
        engine.may.set()
        assert wait(lambda: not one.service.jobs, 5)
        assert taken.id == made
        assert other.http.get(f"/v1/conversations/{talk}/items").json()["data"] == []
        assert status(other, made) != "completed"


async def read_log(server, response_id):
    return await server.service.store.read_events("", response_id, -1, 10000)


def test_what_a_dead_server_left_is_closed_once_by_whoever_sees_it(tmp_path):
    path = tmp_path / "s.db"
    response = {"id": "resp_1", "status": "in_progress", "output": [], "background": True}
    body = {"response": response, "input": [], "previous": None}
    first = {"type": "response.created", "sequence_number": 0, "response": response}

    async def die():
        store = SQLiteStore(path, Bounds(lease_seconds=1.2))
        record = Record("", "resp_1", body, owner="dead")
        await store.put(record, [first])
        await store.close()

    asyncio.run(die())
    with two(path, lease_seconds=1) as servers:
        assert [status(server, "resp_1") for server in servers] == ["in_progress"] * 2
        with ThreadPoolExecutor(3) as pool:
            live = pool.submit(follow, servers[0], "resp_1")
            told = pool.submit(servers[1].http.post, "/v1/responses/resp_1/cancel")
            assert told.result().json()["status"] == "failed"
            assert types(live.result()) == ["created", "failed"]
        events = follow(servers[1], "resp_1")
    assert numbers(events) == [0, 1]
    assert events[-1]["response"]["error"]["code"] == "server_error"


class Shaky(SQLiteStore):
    """Fails as long as it is told to: before a call, or after it has been done."""

    before = after = 0

    async def put(self, record, events=()):
        return await self._shaken(super().put, record, events)

    async def append_events(self, *of):
        return await self._shaken(super().append_events, *of)

    async def renew(self, *of):
        return await self._shaken(super().renew, *of)

    async def _shaken(self, call, *of):
        if self.before > 0:
            self.before -= 1
            raise ConnectionError
        done = await call(*of)
        if self.after > 0:
            self.after -= 1
            raise ConnectionError
        return done


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_is_away_for_a_moment_costs_no_response_and_no_event(tmp_path, when):
    store = Shaky(tmp_path / "s.db")
    with running(paced(lambda request: HELLO, rate=40), store=store) as server:
        made = server.create(background=True).json()["id"]
        setattr(store, when, 3)
        assert ended(server, made)["status"] == "completed"
        events = follow(server, made)
        setattr(store, when, 0)
    assert numbers(events) == list(range(len(events)))
    text = [event["delta"] for event in events if event["type"].endswith("text.delta")]
    assert "".join(text) == "Hello there."


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_addition_that_failed_is_made_once_when_it_is_tried_again(tmp_path, when):
    items = [{"type": "message", "id": f"msg_{number}"} for number in range(3)]

    async def scenario():
        store = Shaky(tmp_path / "s.db")
        made = conversations.begun({})
        await store.put(conversations.record("t", made, items[:1]))
        setattr(store, when, 1)
        with pytest.raises(ConnectionError):
            await conversations.extend(store, "t", made, items[1:])
        await conversations.extend(store, "t", made, items[1:])
        found = await conversations.conversation(store, "t", made)
        await store.close()
        return found.body["items"]

    assert asyncio.run(scenario()) == items


def test_a_store_that_stays_away_ends_the_generation_and_the_lease_ends_the_response(tmp_path):
    engine = Watched()
    store = Shaky(tmp_path / "s.db", Bounds(lease_seconds=1))
    with running(engine, store=store, lease_seconds=1) as server:
        made = server.create(background=True).json()["id"]
        assert wait(lambda: engine.steps > 20)
        store.before = 1 << 20
        assert wait(lambda: engine.closed, 5)
        store.before = 0
        assert ended(server, made)["status"] == "failed"
        assert types(follow(server, made))[-1] == "failed"


def test_a_response_that_can_not_be_stored_is_refused_and_gives_its_place_back(tmp_path):
    store = Shaky(tmp_path / "s.db")
    with running(paced(lambda request: LONG, rate=50), store=store, running=1) as server:
        store.before = 1
        assert server.create(background=True).status_code >= 500
        assert wait(lambda: server.service.slots.running == 0, 2)
        assert not server.service.jobs
