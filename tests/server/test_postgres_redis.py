"""The stores that servers share: several at once, and a database that goes away."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import asyncpg
import pytest

from atem.cli.serve import main
from atem.errors import MissingExtra, OptionError
from atem.server import conversations
from atem.server.settings import Settings
from atem.server.store import Bounds, Record
from atem.server.store.network import StoreUnreachable, key_of
from atem.server.store.postgres import PostgresStore
from atem.server.store.redis import RedisStore
from tests.server.running import HELLO, running, wait

PASSWORD = "verysecret"


def record(name, **fields):
    return Record("t", name, fields.pop("body", {"name": name}), **fields)


def several(stores, scenario):
    async def whole():
        try:
            return await scenario(*stores)
        finally:
            for store in stores:
                await store.close()

    return asyncio.run(whole())


def test_stores_that_begin_at_once_in_an_empty_database_share_what_they_keep(database):
    name = database.name()
    stores = [database.make(clock=lambda: 1000.0, name=name) for _ in range(6)]

    async def scenario(*stores):
        await asyncio.gather(*(store.put(record(f"{n}")) for n, store in enumerate(stores)))
        first = [await store.get("t", f"{n}") for n in range(len(stores)) for store in stores[:1]]
        return [each.id for each in first], {await store.size() for store in stores}

    names, sizes = several(stores, scenario)
    assert names == [f"{n}" for n in range(6)]
    assert len(sizes) == 1


def test_stores_of_two_names_see_nothing_of_each_other(database):
    async def scenario(one, other):
        await one.put(record("a", owner="me", item_ids=("m",)))
        seen = await other.get("t", "a"), await other.find("t", "m"), await other.take_over("me")
        return seen, await other.size()

    stores = [database.make(clock=lambda: 1000.0) for _ in range(2)]
    assert several(stores, scenario) == ((None, None, []), 0)


def test_the_bound_and_the_count_hold_when_several_stores_write_at_once(database):
    bounds, name = Bounds(bytes=3000), database.name()
    stores = [database.make(bounds, lambda: 1000.0, name=name) for _ in range(4)]

    async def write(store, letter):
        for number in range(20):
            made = record(f"{letter}{number}", body={"text": f"{number**80:x}"})
            await store.put(made, [{"sequence_number": 0, "text": "x"}])

    async def scenario(*stores):
        await asyncio.gather(*map(write, stores, "abcd"))
        await stores[0].put(record("last"))
        size = await stores[0].size()
        names = [f"{letter}{number}" for letter in "abcd" for number in range(20)]
        kept = [name for name in names if await stores[1].get("t", name)]
        for name in [*kept, "last"]:
            await stores[2].delete("t", name)
        return size, len(kept), await stores[3].size()

    size, kept, empty = several(stores, scenario)
    assert 1500 < size <= 3000
    assert kept > 5
    assert empty == 0


def calls(store, draw):
    """Any call, at random."""
    key, owner = f"r{draw.randrange(9)}", f"o{draw.randrange(3)}"
    holder = owner if draw.random() < 0.5 else ""
    events = [{"sequence_number": draw.randrange(99)}]
    items = tuple(f"i{draw.randrange(9)}" for _ in range(3))
    body = {"text": "y" * draw.randrange(500)}
    made = record(key, body=body, owner=holder, item_ids=items)

    async def put():
        found = await store.get("t", key)
        await store.put(replace(made, version=found.version if found else 0), events)

    return draw.choice(
        [
            put,
            lambda: store.append_events("t", key, events, owner),
            lambda: store.delete("t", key),
            lambda: store.renew(owner, [("t", f"r{number}") for number in range(9)]),
            lambda: store.take_over(owner),
            store.expire,
            lambda: store.cancel("t", key),
            lambda: store.find("t", items[0]),
        ]
    )


def test_whatever_several_stores_do_at_once_no_call_fails_and_all_bytes_are_counted(database):
    name, bounds = database.name(), {"seconds": 0.5, "bytes": 3000, "log_seconds": 0.1}
    clock = lambda: 1000 + time.monotonic() - began  # noqa: E731
    stores = [database.made(clock, name, lease_seconds=0.02, **bounds) for _ in range(4)]
    began = time.monotonic()

    async def work(store, seed):
        draw = random.Random(seed)
        while time.monotonic() < began + 1:
            await calls(store, draw)()

    async def scenario(*stores):
        await asyncio.gather(*(work(store, seed) for seed in range(3) for store in stores))
        for number in range(9):
            await stores[0].delete("t", f"r{number}")
        return await stores[1].size()

    assert several(stores, scenario) == 0


def test_once_a_record_is_taken_over_its_log_grows_by_no_one_elses_hand(database):
    now = [1000.0]
    stores = [database.made(lambda: now[0], "fence", lease_seconds=1) for _ in range(2)]

    async def write(store):
        number = 0
        while await store.append_events("t", "a", [{"sequence_number": number}], "me"):
            number += 1

    async def scenario(mine, yours):
        grown = []
        for _ in range(25):
            await mine.put(record("a", owner="me"))
            writing = [asyncio.ensure_future(write(mine)) for _ in range(4)]
            await asyncio.sleep(0.005)
            now[0] += 2
            await yours.take_over("you")
            before = await yours.read_events("t", "a", -1, 10_000)
            await asyncio.gather(*writing)
            grown.append(len(await yours.read_events("t", "a", -1, 10_000)) - len(before))
            await mine.delete("t", "a")
        return grown

    assert several(stores, scenario) == [0] * 25


def test_a_database_that_goes_away_fails_its_calls_and_all_is_well_once_it_is_back(database):
    async def scenario(store):
        await store.put(record("a"))
        database.stop()
        failures = []
        for _ in range(2):
            with pytest.raises(StoreUnreachable) as failed:
                await store.get("t", "a")
            failures.append(str(failed.value))
        database.start()
        for _ in range(200):
            try:
                await store.put(record("b"))
                break
            except StoreUnreachable:
                await asyncio.sleep(0.02)
        return failures, (await store.get("t", "b")).id

    failures, found = several([database.make(clock=lambda: 1000.0)], scenario)
    assert found == "b"
    assert all("name" not in text for text in failures)


@asynccontextmanager
async def relayed(database):
    """The address of the database over a relay, and a switch that loses its next answer."""
    lose = asyncio.Event()

    async def pass_on(source, target):
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                target.write(data)
        target.close()

    async def answer(source, target):
        while (data := await source.read(1 << 16)) and not lose.is_set():
            target.write(data)
        lose.clear()
        target.close()

    async def connected(reader, writer):
        source, target = await asyncio.open_unix_connection(database.socket)
        await asyncio.gather(pass_on(reader, target), answer(source, writer))
        target.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield database.remote.format(port), lose


def test_an_addition_whose_answer_is_lost_fails_and_is_made_once_when_tried_again(database):
    items = [{"type": "message", "id": f"msg_{number}"} for number in range(3)]

    class Lost(database.store):
        async def put(self, *of):
            if self.lose:
                self.lose.set()
                self.lose = None
            return await super().put(*of)

    async def scenario():
        made = conversations.begun({})
        async with relayed(database) as (url, lose):
            store = Lost(url, name=database.name())
            store.lose = None
            await store.put(conversations.record("t", made, []))
            await conversations.extend(store, "t", made, items[:1])
            store.lose = lose
            with pytest.raises(StoreUnreachable):
                await conversations.extend(store, "t", made, items[1:])
            told = (await conversations.conversation(store, "t", made)).body["items"]
            await conversations.extend(store, "t", made, items[1:])
            found = await conversations.conversation(store, "t", made)
            await store.close()
            return told, found.body["items"]

    assert asyncio.run(scenario()) == (items, items)


STRANGE = ["", "a:b", "a", "b:a", "ä", "\0", "\ud800", "sha256=", "x" * 5000, "% \n"]


def test_every_text_is_an_id_and_no_two_are_the_same(database):
    keys = [(tenant, name) for tenant in STRANGE for name in STRANGE]

    async def scenario(store):
        for number, (tenant, name) in enumerate(keys):
            await store.put(Record(tenant, name, {"n": number}, item_ids=(name,)))
        got = [await store.get(*key) for key in keys]
        found = [await store.find(*key) for key in keys]
        return got, found

    got, found = several([database.make(clock=lambda: 1000.0)], scenario)
    assert [(each.tenant, each.id, each.body["n"]) for each in got] == [
        (*key, number) for number, key in enumerate(keys)
    ]
    assert found == got
    assert len({key_of(text) for text in STRANGE}) == len(STRANGE)


@pytest.mark.parametrize(
    ("store", "url"),
    [
        (PostgresStore, "mysql://u:{}@h/d"),
        (PostgresStore, "postgresql://u:{}/x@h/d"),
        (PostgresStore, "postgresql://u:{}?@h/d"),
        (RedisStore, "http://u:{}@h"),
        (RedisStore, "redis://:{}#1@h"),
        (RedisStore, "redis://:{}@h:port"),
        (RedisStore, "{}"),
    ],
)
def test_an_address_that_cant_work_is_refused_without_showing_its_password(store, url):
    with pytest.raises(OptionError, match="store_url") as refused:
        store(url.format(PASSWORD))
    assert PASSWORD not in str(refused.value)


def test_a_name_that_cant_be_one_is_refused(database):
    for name in ("", "Atem", "a-b", 'a"; --', "a" * 41):
        with pytest.raises(OptionError, match="store_name"):
            database.make(name=name)


@pytest.mark.parametrize(
    ("store", "url"), [(PostgresStore, "postgresql://u:{}@{}/d"), (RedisStore, "redis://:{}@{}")]
)
def test_nobody_at_the_address_is_an_error_without_its_password(store, url, free_port):
    made = store(url.format(PASSWORD, f"127.0.0.1:{free_port}"))
    with pytest.raises(StoreUnreachable) as failed:
        several([made], lambda store: store.get("t", "a"))
    assert PASSWORD not in str(failed.value)


@pytest.mark.parametrize(
    ("store", "module", "url"),
    [(PostgresStore, "asyncpg", "postgresql:///d"), (RedisStore, "redis", "redis://h")],
)
def test_without_its_extra_a_store_says_how_to_install_it(store, module, url, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'muse-atem\[(postgres|redis)\]'"):
        store(url)


def test_a_server_whose_database_is_away_says_503_and_goes_on_once_it_is_back(database):
    settings = {"store": database.kind, "store_url": database.url, "store_name": database.name()}
    with running([HELLO] * 4, **settings) as served:
        assert served.create().status_code == 200
        database.stop()
        answer = served.http.get("/v1/responses/resp_x")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "try again" in answer.json()["error"]["message"]
        assert served.create().status_code == 200, "an answer is not spoilt by what can't be kept"
        database.start()
        assert wait(lambda: served.http.get("/v1/responses/resp_x").status_code == 404)
        response_id = served.create().json()["id"]
        assert served.create(previous_response_id=response_id).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "postgres"], "store='postgres' needs store_url"),
        (["--store-url", "redis://:{}@h"], "store='sqlite' has no store_url"),
        (["--store", "redis", "--store-url", "redis://:{}@127.0.0.1:{}"], "is it running, and"),
        (["--store", "postgres", "--store-url", "postgres://u:{}@127.0.0.1:{}/d"], "is it running"),
    ],
)
def test_the_command_refuses_a_store_that_is_not_there(
    arguments, message, tmp_path, capfd, free_port
):
    script = tmp_path / "script.toml"
    script.write_text('[[turns]]\nwrite = " to=user<|message|>Hi.<|eot|>"')
    given = [each.format(PASSWORD, free_port) for each in arguments]
    assert main(["--engine", f"scripted:{script}", "--port", "0", *given]) == 2
    said = capfd.readouterr().err
    assert message in said
    assert PASSWORD not in said


def test_no_text_of_the_settings_holds_the_address_of_the_store():
    settings = Settings(store="redis", store_url=f"redis://:{PASSWORD}@h")
    assert PASSWORD not in f"{settings!r} {settings}"


def test_nothing_is_added_to_a_log_behind_a_change_of_hands_that_has_begun(postgres):
    name = postgres.name()

    async def scenario(store):
        await store.put(record("a", owner="me"))
        other = await asyncpg.connect(postgres.url, server_settings={"search_path": name})
        async with other.transaction():
            await other.execute("UPDATE records SET owner = 'you'")
            adding = asyncio.ensure_future(
                store.append_events("t", "a", [{"sequence_number": 0}], "me")
            )
            waited = not (await asyncio.wait({adding}, timeout=0.1))[0]
        await other.close()
        return waited, await adding, await store.read_events("t", "a", -1)

    assert several([postgres.make(clock=lambda: 1000.0, name=name)], scenario) == (True, False, [])


def test_a_schema_of_a_later_version_is_refused(postgres):
    name = postgres.name()

    async def scenario(store):
        await store.size()
        connection = await asyncpg.connect(postgres.url, server_settings={"search_path": name})
        await connection.execute("UPDATE version SET number = 99")
        await connection.close()
        later = postgres.make(name=name)
        with pytest.raises(OptionError, match="later version"):
            await later.size()

    several([postgres.make(name=name)], scenario)


def test_redis_itself_forgets_what_nobody_drops_and_then_it_is_not_counted_any_more(redis):
    bounds, name, now = Bounds(seconds=100, log_seconds=50), redis.name(), [1000.0]

    async def forget(store):
        await store._redis.delete(*await store._redis.keys(f"{name}:*:t:*"))
        now[0] += 101
        await store.expire()
        left = sorted(key.decode() for key in await store._redis.keys(f"{name}:*"))
        return await store.size(), left

    async def lives(store):
        keys = sorted(await store._redis.keys(f"{name}:*:t:*"))
        return {key.decode(): await store._redis.ttl(key) for key in keys}

    async def scenario(store):
        await store.put(record("a", owner="me", item_ids=("m",)))
        await store.append_events("t", "a", [{"sequence_number": 0}], "me")
        before = await lives(store)
        version = (await store.get("t", "a")).version
        await store.put(record("a", item_ids=("m",), version=version))
        return before, await lives(store), await forget(store)

    before, after, rest = several([redis.make(bounds, lambda: now[0], name=name)], scenario)
    assert rest == (0, [f"{name}:bytes", f"{name}:put"])
    assert set(before.values()) == {-1}
    assert (
        before.keys()
        == after.keys()
        == {f"{name}:{kind}" for kind in ("item:t:m", "log:t:a", "record:t:a")}
    )
    assert all(86400 < seconds <= 86400 + 100 for seconds in after.values())
