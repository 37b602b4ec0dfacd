"""The contract of every store: the same calls give the same answers, whatever keeps them."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

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


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def make(request, tmp_path, clock):
    """Makes a store with bounds; but for one in memory, all that it makes share what they keep."""
    kinds = {"memory": MemoryStore, "sqlite": lambda *of: SQLiteStore(tmp_path / "store.db", *of)}
    if request.param not in kinds:
        database = request.getfixturevalue(request.param)
        return partial(database.made, clock, database.name())
    return lambda **bounds: kinds[request.param](Bounds(**bounds), clock)


@pytest.fixture
def several(make):
    """Makes as many stores as several servers would have that share what they keep."""

    def made(count, **bounds):
        first = make(**bounds)
        shared = isinstance(first, MemoryStore)
        return [first, *(first if shared else make(**bounds) for _ in range(count - 1))]

    return made


def run(store, scenario):
    async def whole():
        try:
            return await scenario(store)
        finally:
            await store.close()

    return asyncio.run(whole())


def run_all(stores, scenario):
    """As ``run``, for several stores at once."""

    async def whole():
        try:
            return await scenario(stores)
        finally:
            await asyncio.gather(*(store.close() for store in set(stores)))

    return asyncio.run(whole())


def record(name, tenant="t", **fields):
    return Record(tenant, name, fields.pop("body", {"name": name}), **fields)


async def put_over(store, record):
    """Put in place of whatever is there."""
    there = await store.get(record.tenant, record.id)
    return await store.put(replace(record, version=there.version))


def events(*numbers):
    return [{"type": "x", "sequence_number": number} for number in numbers]


def test_a_record_comes_back_as_it_was_put(make):
    kept = record("a", body={"text": "é\ud800", "list": [1, None]}, owner="me", item_ids=("m",))

    async def scenario(store):
        await store.put(kept)
        return await store.get("t", "a")

    assert replace(run(make(), scenario), version=0) == kept


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
        await store.put(record("a", owner="me"))
        await store.append_events("t", "a", events(0), "me")
        await put_over(store, record("a", body={"new": True}))
        return (await store.get("t", "a")).body, await store.read_events("t", "a", -1)

    assert run(make(), scenario) == ({"new": True}, events(0))


def test_another_tenant_sees_and_deletes_nothing(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m",)), events(0))
        return (
            await store.get("u", "a"),
            await store.find("u", "m"),
            await store.read_events("u", "a", -1),
            await store.delete("u", "a"),
            (await store.get("t", "a")).id,
        )

    assert run(make(), scenario) == (None, None, [], None, "a")


def test_a_record_is_found_by_its_items_until_it_is_deleted(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m1", "m2")))
        found = [(await store.find("t", item)).id for item in ("m1", "m2")]
        for _ in range(2):
            await store.delete("t", "a")
        return found, await store.find("t", "m1"), await store.get("t", "a")

    assert run(make(), scenario) == (["a", "a"], None, None)


def test_an_item_of_two_records_is_found_in_the_later_one(make):
    async def scenario(store):
        await store.put(record("a", item_ids=("m",)))
        await store.put(record("b", item_ids=("m",)))
        return (await store.find("t", "m")).id

    assert run(make(), scenario) == "b"


def test_events_are_read_in_order_after_a_number_and_up_to_a_limit(make):
    async def scenario(store):
        await store.put(record("a", owner="me"))
        await store.append_events("t", "a", events(0, 1), "me")
        await store.append_events("t", "a", events(2, 3, 10), "me")
        return [
            [event["sequence_number"] for event in await store.read_events("t", "a", *bounds)]
            for bounds in ((-1,), (0,), (1, 2), (10,))
        ]

    assert run(make(), scenario) == [[0, 1, 2, 3, 10], [1, 2, 3, 10], [2, 3], []]


def test_events_of_a_deleted_record_are_gone_and_none_can_be_added(make):
    async def scenario(store):
        await store.put(record("a", owner="me"), events(0))
        await store.delete("t", "a")
        await store.append_events("t", "a", events(1), "me")
        await store.put(record("a"))
        return await store.read_events("t", "a", -1)

    assert run(make(), scenario) == []


def test_age_is_counted_from_the_last_put_and_spares_what_is_open(make, clock):
    async def scenario(store):
        for name in ("old", "again"):
            await store.put(record(name))
        await store.put(record("open", owner="me"))
        clock.now += 5
        await store.put(record("young"))
        await put_over(store, record("again"))
        clock.now += 5
        await store.expire()
        names = ("old", "again", "open", "young")
        return [name for name in names if await store.get("t", name)]

    assert run(make(seconds=10), scenario) == ["again", "open", "young"]


def test_a_log_ends_some_time_after_its_record_was_closed(make, clock):
    async def scenario(store):
        await store.put(record("a"), events(0))
        await store.put(record("b", owner="me"), events(0))
        clock.now += 61
        await store.expire()
        return [len(await store.read_events("t", name, -1)) for name in "ab"]

    assert run(make(log_seconds=60), scenario) == [0, 1]


def test_bytes_are_bounded_and_the_oldest_go_first(make, clock):
    async def scenario(store):
        for number in range(20):
            clock.now += 1
            await store.put(record(f"{number}", body={"text": f"{number**80:x}"}))
        left = [number for number in range(20) if await store.get("t", f"{number}")]
        return left, await store.size()

    left, size = run(make(bytes=1000), scenario)
    assert left == list(range(left[0], 20))
    assert 0 < left[0] < 19
    assert size <= 1000


def test_what_is_open_and_what_was_just_put_is_never_dropped_for_room(make):
    async def scenario(store):
        await store.put(record("open", owner="me"))
        await store.put(record("closed"))
        await store.put(record("last"))
        return [name for name in ("open", "closed", "last") if await store.get("t", name)]

    assert run(make(bytes=1), scenario) == ["open", "last"]


def test_the_size_counts_records_and_logs_and_is_nothing_once_all_is_deleted(make):
    async def scenario(store):
        empty = await store.size()
        await store.put(record("a", owner="me"))
        alone = await store.size()
        await store.append_events("t", "a", events(0, 1), "me")
        both = await store.size()
        await put_over(store, record("a"))
        again = await store.size()
        await store.delete("t", "a")
        return empty, 0 < alone < both == again, await store.size()

    assert run(make(), scenario) == (0, True, 0)


def test_a_put_is_done_only_in_place_of_the_version_that_was_got(make):
    async def scenario(store):
        first = await store.put(record("a"))
        again = await store.put(record("a"))
        got = await store.get("t", "a")
        second = await store.put(replace(got, body={"n": 2}))
        late = await store.put(replace(got, body={"n": 3}))
        now = await store.get("t", "a")
        return first > 0, again, got.version == first, late, now.version == second, now.body

    assert run(make(), scenario) == (True, 0, True, 0, True, {"n": 2})


def test_a_put_of_what_was_put_again_or_deleted_does_nothing(make):
    async def scenario(store):
        await store.put(record("a"))
        got = await store.get("t", "a")
        await put_over(store, record("a", body={"n": 2}))
        late = await store.put(got, events(0))
        body = (await store.get("t", "a")).body
        await store.delete("t", "a")
        gone = await store.put(got), await store.get("t", "a")
        return late, body, gone, await store.read_events("t", "a", -1)

    assert run(make(), scenario) == (0, {"n": 2}, (0, None), [])


def test_a_put_adds_its_events_in_the_same_step_and_changes_the_items(make):
    async def scenario(store):
        version = await store.put(record("a", owner="me", item_ids=("m",)), events(0, 1))
        await store.append_events("t", "a", events(2), "me")
        await store.put(record("a", version=version, item_ids=("m", "n")), events(3))
        found = (await store.find("t", "n")).id, (await store.get("t", "a")).open
        return found, await store.read_events("t", "a", -1)

    assert run(make(), scenario) == (("a", False), events(0, 1, 2, 3))


def test_of_many_puts_at_once_one_is_done_each_time_and_nothing_is_lost(several):
    async def scenario(stores):
        await stores[0].put(record("a", body={"added": []}))

        async def add(number):
            while True:
                store = stores[number % len(stores)]
                got = await store.get("t", "a")
                body = {"added": [*got.body["added"], number]}
                if await store.put(replace(got, body=body)):
                    return

        await asyncio.gather(*map(add, range(16)))
        return sorted((await stores[1].get("t", "a")).body["added"])

    assert run_all(several(3), scenario) == list(range(16))


def test_only_the_owner_adds_to_a_log(make):
    async def scenario(store):
        await store.put(record("a", owner="me"))
        mine = await store.append_events("t", "a", events(0), "me")
        others = [await store.append_events("t", "a", events(1), who) for who in ("you", "")]
        await put_over(store, record("a"))
        late = await store.append_events("t", "a", events(2), "me")
        none = await store.append_events("t", "b", events(0), "me")
        return mine, others, late, none, await store.read_events("t", "a", -1)

    assert run(make(), scenario) == (True, [False, False], False, False, events(0))


def test_what_is_held_is_not_taken_over_before_its_lease_has_run_out(make, clock):
    async def scenario(store):
        await store.put(record("a", owner="me", item_ids=("m",)))
        await store.put(record("b", tenant="u", owner="me"))
        await store.put(record("c"))
        clock.now += 9
        early = await store.take_over("you")
        await store.renew("me", [("t", "a")])
        clock.now += 9
        late = await store.take_over("you")
        clock.now += 1
        last = await store.take_over("you")
        return [[each.id for each in found] for found in (early, late, last)], last[0]

    taken, last = run(make(lease_seconds=10), scenario)
    assert taken == [[], ["b"], ["a"]]
    assert (last.tenant, last.owner, last.item_ids) == ("t", "you", ("m",))


def test_whoever_lost_a_record_can_not_write_it_any_more(make, clock):
    async def scenario(store):
        version = await store.put(record("a", owner="me"), events(0))
        clock.now += 10
        (taken,) = await store.take_over("you")
        kept = record("a", body={"text": "late"}, version=version)
        lost = (
            await store.append_events("t", "a", events(1), "me"),
            await store.put(kept, events(1)),
            await store.renew("me", [("t", "a")]),
        )
        done = await store.append_events("t", "a", events(1), "you"), await store.put(taken) > 0
        return lost, done, (await store.get("t", "a")).body

    assert run(make(lease_seconds=10), scenario) == ((False, 0, {}), (True, True), {"name": "a"})


def test_each_record_is_taken_over_by_one_alone(several, clock):
    async def scenario(stores):
        for number in range(20):
            await stores[0].put(record(f"{number}", owner="me"))
        clock.now += 100
        taken = await asyncio.gather(*(s.take_over(f"{n}") for n, s in enumerate(stores)))
        return sorted(int(each.id) for found in taken for each in found)

    assert run_all(several(4), scenario) == list(range(20))


def test_an_end_that_is_asked_for_is_told_to_the_owner_of_an_open_record(make):
    async def scenario(store):
        await store.put(record("a", owner="me"))
        await store.put(record("b", owner="me"))
        await store.put(record("c", owner="you"))
        await store.put(record("d"))
        keys = [("t", name) for name in "abcde"]
        asked = [await store.cancel(*key) for key in keys[:1] + keys[3:]]
        return asked, await store.renew("me", keys)

    assert run(make(), scenario) == ([True, False, False], {("t", "a"): True, ("t", "b"): False})


def test_an_end_that_was_asked_for_is_asked_for_as_long_as_the_record_stays_open(make):
    async def scenario(store):
        version = await store.put(record("a", owner="me"))
        await store.cancel("t", "a")
        await store.put(record("a", owner="me", version=version))
        first = await store.renew("me", [("t", "a")])
        for again in (record("a"), record("a", owner="me")):
            await put_over(store, again)
        return [*first.values(), *(await store.renew("me", [("t", "a")])).values()]

    assert run(make(), scenario) == [True, False]


def test_a_change_of_a_record_or_its_log_is_told_to_whoever_looked_before(make):
    async def scenario(store):
        version = await store.put(record("a", owner="me"))
        told = []
        for change in (
            lambda: store.append_events("t", "a", events(0), "me"),
            lambda: store.put(record("a", version=version), events(1)),
            lambda: store.delete("t", "a"),
        ):
            growth = store.growth("t", "a")
            before = growth.is_set()
            await change()
            async with asyncio.timeout(5):
                await growth.wait()
            told.append((before, store.growth("t", "a").is_set()))
        return told

    assert run(make(), scenario) == [(False, False)] * 3


def test_a_reader_that_polls_sees_what_another_store_has_written(several):
    async def scenario(stores):
        writer, reader = stores
        await writer.put(record("a", owner="me"))
        growth = reader.growth("t", "a")
        await writer.append_events("t", "a", events(0), "me")
        try:
            async with asyncio.timeout(reader.poll):
                await growth.wait()
        except TimeoutError:
            pass
        return await reader.read_events("t", "a", -1)

    assert run_all(several(2), scenario) == events(0)


def test_calls_beside_each_other_are_all_kept(make):
    async def scenario(store):
        await asyncio.gather(*(store.put(record(f"{number}")) for number in range(50)))
        found = await asyncio.gather(*(store.get("t", f"{number}") for number in range(50)))
        return [each.id for each in found]

    assert run(make(), scenario) == [f"{number}" for number in range(50)]


def test_sqlite_keeps_everything_over_a_restart_in_a_file_of_its_user_alone(tmp_path):
    path = tmp_path / "folder" / "store.db"

    async def write(store):
        await store.put(record("a", item_ids=("m",)), events(0))

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


def test_sqlite_stores_that_begin_at_once_in_a_new_file_all_can_use_it(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: SQLiteStore(tmp_path / "s.db", clock=Clock()), range(8)))

    async def scenario(stores):
        await asyncio.gather(*(store.put(record(f"{n}")) for n, store in enumerate(stores)))
        return [(await stores[0].get("t", f"{n}")).id for n in range(8)]

    assert run_all(stores, scenario) == [f"{n}" for n in range(8)]
