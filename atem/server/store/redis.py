"""The store in Redis, which several servers share; event logs are streams.

Rules: each call that changes something is one script, which Redis runs alone.
Redis drops what is too old by itself, some time after this program would have,
so that nothing stays of servers that never came back. All keys begin with one
name; one Redis keeps them all (no cluster).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import MissingExtra, OptionError
from .growth import Growth
from .interface import Bounds
from .network import CONNECTIONS, POLL, SECONDS, StoreUnreachable, check, key_of
from .record import Record, pack, unpack

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Iterable, Sequence

    from .interface import Key

GRACE: Final = 86400.0
"""Seconds that Redis keeps a thing after it has become too old."""

PAGE: Final = 500
"""Records that one script drops; others wait for it."""

# KEYS[1] is the name before all keys. A member is "tenant:id". Of a record there are
#   record:MEMBER   hash: created, open, owner, version, ending, body, items (spaces between)
#   log:MEMBER      stream: the event of number N is N+1-0
#   item:TENANT:ID  the member that was last put with this item
# and of all together
#   put, bytes      counters
#   sizes, logs     hashes: bytes of each record, of each log
#   leases          zset of the open ones, by when their lease runs out
#   order, created  zsets of the closed ones; touched, of those that have a log
# A version is the number of the last put, or of the last change of hands.
COMMON: Final = """
local name = KEYS[1]
local function at(kind, member)
    return name .. ':' .. kind .. (member and ':' .. member or '')
end
local function count(kind, member, change)
    redis.call('HINCRBY', at(kind), member, change)
    redis.call('INCRBY', at('bytes'), change)
end
local function clear(kind, member)
    local size = redis.call('HGET', at(kind), member)
    if size then
        redis.call('HDEL', at(kind), member)
        redis.call('DECRBY', at('bytes'), size)
    end
end
local function forget(member)
    for item in string.gmatch(redis.call('HGET', at('record', member), 'items') or '', '%S+') do
        if redis.call('GET', at('item', item)) == member then
            redis.call('DEL', at('item', item))
        end
    end
    redis.call('DEL', at('record', member))
    redis.call('ZREM', at('leases'), member)
    redis.call('ZREM', at('order'), member)
    redis.call('ZREM', at('created'), member)
    clear('sizes', member)
end
local function drop_log(member)
    redis.call('DEL', at('log', member))
    redis.call('ZREM', at('touched'), member)
    clear('logs', member)
end
local function drop(member)
    forget(member)
    drop_log(member)
end
local function seen(member, oldest)
    local created, open = unpack(redis.call('HMGET', at('record', member), 'created', 'open'))
    return created and (open == '1' or tonumber(created) > oldest)
end
"""

LOG: Final = """
local function append(member, first)
    local log = at('log', member)
    local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
    last = last and tonumber(string.match(last[1], '%d+')) or 0
    for place = first, #ARGV, 2 do
        if tonumber(ARGV[place]) > last then
            redis.call('XADD', log, ARGV[place] .. '-0', 'e', ARGV[place + 1])
            count('logs', member, #ARGV[place + 1])
        end
    end
end
"""
PUT: Final = """
local member, expected, created, open, owner, body, items = unpack(ARGV, 1, 7)
local touched, ends, most, lives, log_lives = unpack(ARGV, 8, 12)
local record, log = at('record', member), at('log', member)
local before, ending = unpack(redis.call('HMGET', record, 'version', 'ending'))
if expected ~= '' and tonumber(expected) ~= tonumber(before or 0) then return 0 end
if expected == '' or open == '0' then ending = '0' end
local version = redis.call('INCR', at('put'))
forget(member)
redis.call('HSET', record, 'created', created, 'open', open, 'owner', owner, 'version', version,
    'ending', ending or '0', 'body', body, 'items', items)
count('sizes', member, #body)
for item in string.gmatch(items, '%S+') do
    redis.call('SET', at('item', item), member)
end
append(member, 13)
if open == '1' then
    redis.call('ZADD', at('leases'), ends, member)
    redis.call('ZREM', at('touched'), member)
    redis.call('PERSIST', log)
else
    redis.call('ZADD', at('order'), version, member)
    redis.call('ZADD', at('created'), created, member)
    redis.call('PEXPIRE', record, lives)
    for item in string.gmatch(items, '%S+') do
        redis.call('PEXPIRE', at('item', item), lives)
    end
    if redis.call('PEXPIRE', log, log_lives) == 1 then
        redis.call('ZADD', at('touched'), touched, member)
    end
end
while tonumber(redis.call('GET', at('bytes'))) > tonumber(most) do
    local oldest = redis.call('ZRANGE', at('order'), 0, 1)
    local victim = oldest[1] ~= member and oldest[1] or oldest[2]
    if not victim then break end
    drop(victim)
end
return version
"""
DELETE: Final = """
local was = seen(ARGV[1], tonumber(ARGV[2]))
drop(ARGV[1])
return was and 1 or 0
"""
APPEND: Final = """
local member, owner, touched, log_lives = unpack(ARGV, 1, 4)
local open, held = unpack(redis.call('HMGET', at('record', member), 'open', 'owner'))
if held ~= owner then return 0 end
append(member, 5)
if open == '0' and redis.call('PEXPIRE', at('log', member), log_lives) == 1 then
    redis.call('ZADD', at('touched'), 'NX', touched, member)
end
return 1
"""
RENEW: Final = """
local held = {}
for place = 3, #ARGV do
    local open, owner, ending = unpack(
        redis.call('HMGET', at('record', ARGV[place]), 'open', 'owner', 'ending'))
    if open == '1' and owner == ARGV[1] then
        redis.call('ZADD', at('leases'), ARGV[2], ARGV[place])
        table.insert(held, tonumber(ending))
    else
        table.insert(held, -1)
    end
end
return held
"""
CANCEL: Final = """
if redis.call('HGET', at('record', ARGV[1]), 'open') ~= '1' then return 0 end
redis.call('HSET', at('record', ARGV[1]), 'ending', 1)
return 1
"""
TAKE_OVER: Final = """
local taken = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', at('leases'), '-inf', ARGV[2])) do
    local record = at('record', member)
    redis.call('HSET', record, 'owner', ARGV[1], 'version', redis.call('INCR', at('put')))
    redis.call('ZADD', at('leases'), ARGV[3], member)
    table.insert(
        taken, redis.call('HMGET', record, 'created', 'open', 'owner', 'version', 'body'))
end
return taken
"""
EXPIRE: Final = """
local old = redis.call('ZRANGEBYSCORE', at('created'), '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(old) do drop(member) end
local silent = redis.call(
    'ZRANGEBYSCORE', at('touched'), '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(silent) do drop_log(member) end
return {#old, #silent}
"""


SCRIPTS: Final = {
    "put": COMMON + LOG + PUT,
    "append": COMMON + LOG + APPEND,
    "delete": COMMON + DELETE,
    "renew": COMMON + RENEW,
    "cancel": COMMON + CANCEL,
    "take_over": COMMON + TAKE_OVER,
    "expire": COMMON + EXPIRE,
}
FIELDS: Final = ("created", "open", "owner", "version", "body")


class RedisStore:
    """A :class:`~atem.server.store.Store` in the Redis at ``url``, under keys of a name.

    It connects at its first call. Raises OptionError for an address that can't
    work, MissingExtra without redis, and from every call StoreUnreachable.
    """

    def __init__(
        self,
        url: str,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
        name: str = "atem",
    ) -> None:
        check(url, name, ("redis", "rediss", "unix"))
        try:
            from redis import exceptions
        except ImportError as error:
            raise MissingExtra("redis", "the Redis store") from error
        self._errors: Any = (OSError, exceptions.RedisError)
        self._redis: Any = _client(url)
        self._name = name
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._growth = Growth()
        self._scripts = {
            name: self._redis.register_script(script) for name, script in SCRIPTS.items()
        }

    @property
    def poll(self) -> float:
        """See :class:`~atem.server.store.Store`."""
        return POLL

    async def put(self, record: Record) -> None:
        """See :class:`~atem.server.store.Store`."""
        await self._put(record, "")

    async def swap(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """See :class:`~atem.server.store.Store`."""
        return await self._put(record, record.version, events)

    async def _put(
        self, record: Record, expected: int | str, events: Sequence[dict[str, Any]] = ()
    ) -> int:
        now, bounds = self._clock(), self._bounds
        version = await self._run(
            "put",
            _member(record.tenant, record.id),
            expected,
            record.created,
            int(record.open),
            record.owner,
            pack([record.tenant, record.id, record.body, record.item_ids]),
            " ".join(_member(record.tenant, item) for item in record.item_ids),
            now,
            now + bounds.lease_seconds,
            bounds.bytes,
            _milliseconds(max(record.created + bounds.seconds - now, 0)),
            _milliseconds(bounds.log_seconds),
            *_pairs(events),
        )
        if version:
            self._growth.tell((record.tenant, record.id))
        return int(version)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._get(_member(tenant, record_id))

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            member = await self._redis.get(f"{self._name}:item:{_member(tenant, item_id)}")
        return None if member is None else await self._get(member.decode())

    async def delete(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        was = await self._run("delete", _member(tenant, record_id), self._oldest)
        self._growth.tell((tenant, record_id))
        return bool(was)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str = ""
    ) -> bool:
        """See :class:`~atem.server.store.Store`."""
        times = (self._clock(), _milliseconds(self._bounds.log_seconds))
        member = _member(tenant, record_id)
        done = await self._run("append", member, owner, *times, *_pairs(events))
        self._growth.tell((tenant, record_id))
        return bool(done)

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        if await self.get(tenant, record_id) is None:
            return []
        log = f"{self._name}:log:{_member(tenant, record_id)}"
        with self._reached():
            rows = await self._redis.xrange(log, min=f"{max(after + 2, 0)}-0", count=limit)
        return [unpack(fields[b"e"]) for _, fields in rows]

    def growth(self, tenant: str, record_id: str) -> asyncio.Event:
        """See :class:`~atem.server.store.Store`."""
        return self._growth.next((tenant, record_id))

    async def renew(self, owner: str, keys: Iterable[Key]) -> dict[Key, bool]:
        """See :class:`~atem.server.store.Store`."""
        wanted = list(keys)
        until = self._clock() + self._bounds.lease_seconds
        held = await self._run("renew", owner, until, *(_member(*key) for key in wanted))
        return {key: bool(state) for key, state in zip(wanted, held, strict=True) if state >= 0}

    async def cancel(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        return bool(await self._run("cancel", _member(tenant, record_id)))

    async def take_over(self, owner: str) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        rows = await self._run("take_over", owner, now, now + self._bounds.lease_seconds)
        return list(map(_record, rows))

    async def expire(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        silent, expired = self._clock() - self._bounds.log_seconds, 0
        while True:
            old, logs = await self._run("expire", self._oldest, silent, PAGE)
            expired += int(old)
            if max(old, logs) < PAGE:
                return expired

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            return int(await self._redis.get(f"{self._name}:bytes") or 0)

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            await self._redis.aclose()

    @property
    def _oldest(self) -> float:
        """What was created then, or before, is too old."""
        return self._clock() - self._bounds.seconds

    async def _get(self, member: str) -> Record | None:
        with self._reached():
            row = await self._redis.hmget(f"{self._name}:record:{member}", *FIELDS)
        if row[0] is None:
            return None
        record = _record(row)
        return record if record.open or record.created > self._oldest else None

    async def _run(self, script: str, *arguments: Any) -> Any:
        with self._reached():
            return await self._scripts[script](keys=[self._name], args=arguments)

    @contextmanager
    def _reached(self) -> Generator[None, None, None]:
        try:
            yield
        except self._errors as error:
            # No text of the server's: it may quote what was to be stored.
            raise StoreUnreachable(f"the Redis store: {type(error).__name__}") from error


def _member(tenant: str, name: str) -> str:
    return f"{key_of(tenant)}:{key_of(name)}"


def _pairs(events: Sequence[dict[str, Any]]) -> list[Any]:
    """Number and event in turn; a stream has no entry 0-0."""
    return [each for event in events for each in (event["sequence_number"] + 1, pack(event))]


def _record(row: Sequence[bytes]) -> Record:
    created, is_open, owner, version, packed = row
    tenant, record_id, body, items = unpack(packed)
    about = (is_open == b"1", tuple(items), owner.decode(), int(version))
    return Record(tenant, record_id, float(created), body, *about)


def _milliseconds(seconds: float) -> int:
    return int((seconds + GRACE) * 1000)


def _client(url: str) -> Any:
    """A client with a bounded pool; a call whose connection is broken is tried again, once."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import ConstantBackoff

    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=SECONDS,
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
            retry=Retry(ConstantBackoff(0.1), 1),
        )
    except ValueError:
        raise OptionError("store_url can't be read as the address of a Redis") from None
    return Redis.from_pool(pool)
