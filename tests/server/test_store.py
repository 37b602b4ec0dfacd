"""The contract of every store: the same calls give the same answers, whatever keeps them."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from atem.errors import OptionError
from atem.server.store import Bounds, Record
from atem.server.store.memory import MemoryStore
from atem.server.store.sqlite import SQLiteStore


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def make(request, tmp_path, clock):
    """Makes a store with bounds."""

    def made(**bounds):
        if request.param == "memory":
            return MemoryStore(Bounds(**bounds), clock)
        return SQLiteStore(tmp_path / "store.db", Bounds(**bounds), clock)

    return made


def run(store, scenario):
    async def whole():
        try:
            return await scenario(store)
        finally:
            await store.close()

    return asyncio.run(whole())


def record(name, tenant="t", created=1000.0, **fields):
    return Record(tenant, name, created, fields.pop("body", {"name": name}), **fields)


def events(*numbers):
    return [{"type": "x", "sequence_number": number} for number in numbers]


def test_a_record_comes_back_as_it_was_put(make):
    kept = record("a", body={"text": "é\ud800", "list": [1, None]}, open=True, item_ids=("m",))

    async def scenario(store):
        await store.put(kept)
        return await store.get("t", "a")

    assert run(make(), scenario) == kept


def test_a_change_of_what_was_put_or_got_changes_nothing_in_the_store(make):
    async def scenario(store):
        mine = record("a")
        await store.put(mine)
        mine.body["name"] = "changed"
        (await store.get("t", "a")).body["name"] = "changed too"
        return (await store.get("t", "a")).body

    assert run(make(), scenario) == {"name": "a"}


def test_a_second_put_replaces_the_record_and_keeps_its_log(make):
    async def scenario(store):
        await store.put(record("a", open=True))
        await store.append_events("t", "a", events(0))
        await store.put(record("a", body={"new": True}))
        return (await store.get("t", "a")).body, await store.read_events("t", "a", -1)

    assert run(make(), scenario) == ({"new": True}, events(0))


def test_another_tenant_sees_and_deletes_nothing(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m",)))
        await store.append_events("t", "a", events(0))
        return (
            await store.get("u", "a"),
            await store.find("u", "m"),
            await store.read_events("u", "a", -1),
            await store.delete("u", "a"),
            (await store.get("t", "a")).id,
        )

    assert run(make(), scenario) == (None, None, [], False, "a")


def test_a_record_is_found_by_its_items_until_it_is_deleted(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m1", "m2")))
        found = [(await store.find("t", item)).id for item in ("m1", "m2")]
        deleted = await store.delete("t", "a"), await store.delete("t", "a")
        return found, deleted, await store.find("t", "m1"), await store.get("t", "a")

    assert run(make(), scenario) == (["a", "a"], (True, False), None, None)


def test_an_item_of_two_records_is_found_in_the_later_one(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m",)))
        await store.put(record("b", item_ids=("m",)))
        return (await store.find("t", "m")).id

    assert run(make(), scenario) == "b"


def test_events_are_read_in_order_after_a_number_and_up_to_a_limit(make):
    async def scenario(store):
        await store.put(record("a", open=True))
        await store.append_events("t", "a", events(0, 1))
        await store.append_events("t", "a", events(2, 3, 10))
        return [
            [event["sequence_number"] for event in await store.read_events("t", "a", *bounds)]
            for bounds in ((-1,), (0,), (1, 2), (10,))
        ]

    assert run(make(), scenario) == [[0, 1, 2, 3, 10], [1, 2, 3, 10], [2, 3], []]


def test_events_of_a_deleted_record_are_gone_and_none_can_be_added(make):
    async def scenario(store):
        await store.put(record("a"))
        await store.append_events("t", "a", events(0))
        await store.delete("t", "a")
        await store.append_events("t", "a", events(1))
        await store.put(record("a"))
        return await store.read_events("t", "a", -1)

    assert run(make(), scenario) == []


def test_age_is_counted_from_creation_and_spares_what_is_open(make, clock):
    async def scenario(store):
        await store.put(record("old"))
        await store.put(record("open", open=True))
        await store.put(record("young", created=1005.0))
        clock.now = 1010.0
        unseen = await store.get("t", "old")
        expired = await store.expire()
        left = [name for name in ("old", "open", "young") if await store.get("t", name)]
        return unseen, expired, left

    assert run(make(seconds=10), scenario) == (None, 1, ["open", "young"])


def test_a_log_ends_some_time_after_its_record_was_closed(make, clock):
    async def scenario(store):
        await store.put(record("a"))
        await store.put(record("b", open=True))
        for name in "ab":
            await store.append_events("t", name, events(0))
        clock.now += 61
        await store.expire()
        return [len(await store.read_events("t", name, -1)) for name in "ab"]

    assert run(make(log_seconds=60), scenario) == [0, 1]


def test_bytes_are_bounded_and_the_oldest_go_first(make):
    async def scenario(store):
        for number in range(20):
            await store.put(record(f"{number}", body={"text": f"{number**80:x}"}))
        left = [number for number in range(20) if await store.get("t", f"{number}")]
        return left, await store.size()

    left, size = run(make(bytes=1000), scenario)
    assert left == list(range(left[0], 20))
    assert 0 < left[0] < 19
    assert size <= 1000


def test_what_is_open_and_what_was_just_put_is_never_dropped_for_room(make):
    async def scenario(store):
        await store.put(record("open", open=True))
        await store.put(record("closed"))
        await store.put(record("last"))
        return [name for name in ("open", "closed", "last") if await store.get("t", name)]

    assert run(make(bytes=1), scenario) == ["open", "last"]


def test_the_size_counts_records_and_logs_and_is_nothing_once_all_is_deleted(make):
    async def scenario(store):
        empty = await store.size()
        await store.put(record("a"))
        alone = await store.size()
        await store.append_events("t", "a", events(0, 1))
        both = await store.size()
        await store.put(record("a"))
        again = await store.size()
        await store.delete("t", "a")
        return empty, 0 < alone < both == again, await store.size()

    assert run(make(), scenario) == (0, True, 0)


def test_unfinished_are_the_open_records_of_all_tenants(make):
    async def scenario(store):
        await store.put(record("a", open=True))
        await store.put(record("b", tenant="u", open=True, item_ids=("m",)))
        await store.put(record("c"))
        return {(each.tenant, each.id, each.item_ids) for each in await store.unfinished()}

    assert run(make(), scenario) == {("t", "a", ()), ("u", "b", ("m",))}


def test_calls_beside_each_other_are_all_kept(make):
    async def scenario(store):
        await asyncio.gather(*(store.put(record(f"{number}")) for number in range(50)))
        found = await asyncio.gather(*(store.get("t", f"{number}") for number in range(50)))
        return [each.id for each in found]

    assert run(make(), scenario) == [f"{number}" for number in range(50)]


def test_sqlite_keeps_everything_over_a_restart_in_a_file_of_its_user_alone(tmp_path):
    path = tmp_path / "folder" / "store.db"

    async def write(store):
        await store.put(record("a", item_ids=("m",)))
        await store.append_events("t", "a", events(0))

    async def read(store):
        return (await store.find("t", "m")).id, await store.read_events("t", "a", -1)

    run(SQLiteStore(path, clock=Clock()), write)
    assert path.stat().st_mode & 0o077 == 0
    assert run(SQLiteStore(path, clock=Clock()), read) == ("a", events(0))


def test_sqlite_refuses_a_file_that_is_none_and_one_of_a_later_version(tmp_path):
    (tmp_path / "text.db").write_text("this is no database" * 100)
    with pytest.raises(OptionError, match=r"text.db' can't be used"):
        SQLiteStore(tmp_path / "text.db")
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(OptionError, match="later version"):
        SQLiteStore(tmp_path / "later.db")
