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
from .interface import Bounds
from .network import CONNECTIONS, SECONDS, StoreUnreachable, check, key_of
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

GRACE: Final = 86400.0
"""Seconds that Redis keeps a thing after it has become too old."""

PAGE: Final = 500
"""Records that one script drops; others wait for it."""

# KEYS[1] is the name before all keys. A member is "tenant:id". Of a record there are
#   record:MEMBER   hash: created, open, body, items (keys with spaces between)
#   log:MEMBER      stream: the event of number N is N+1-0
#   item:TENANT:ID  the member that was last put with this item
# and of all together
#   put, bytes      counters
#   sizes, logs     hashes: bytes of each record, of each log
#   open            set; closed ones in zsets: order (by put), created, touched (those with a log)
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
    redis.call('SREM', at('open'), member)
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

PUT: Final = """
local member, created, open, touched, body, items, most, lives, log_lives = unpack(ARGV)
local record, log = at('record', member), at('log', member)
forget(member)
redis.call('HSET', record, 'created', created, 'open', open, 'body', body, 'items', items)
count('sizes', member, #body)
for item in string.gmatch(items, '%S+') do
    redis.call('SET', at('item', item), member)
end
if open == '1' then
    redis.call('SADD', at('open'), member)
    redis.call('ZREM', at('touched'), member)
    redis.call('PERSIST', log)
else
    redis.call('ZADD', at('order'), redis.call('INCR', at('put')), member)
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
"""
DELETE: Final = """
local was = seen(ARGV[1], tonumber(ARGV[2]))
drop(ARGV[1])
return was and 1 or 0
"""
APPEND: Final = """
local member, touched, log_lives = unpack(ARGV, 1, 3)
local log = at('log', member)
local open = redis.call('HGET', at('record', member), 'open')
if not open then return end
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
last = last and tonumber(string.match(last[1], '%d+')) or 0
for place = 4, #ARGV, 2 do
    if tonumber(ARGV[place]) > last then
        redis.call('XADD', log, ARGV[place] .. '-0', 'e', ARGV[place + 1])
        count('logs', member, #ARGV[place + 1])
    end
end
if open == '0' then
    redis.call('PEXPIRE', log, log_lives)
    redis.call('ZADD', at('touched'), 'NX', touched, member)
end
"""
EXPIRE: Final = """
local old = redis.call('ZRANGEBYSCORE', at('created'), '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(old) do drop(member) end
local silent = redis.call(
    'ZRANGEBYSCORE', at('touched'), '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(silent) do drop_log(member) end
return {#old, #silent}
"""


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
        scripts = {"put": PUT, "delete": DELETE, "append": APPEND, "expire": EXPIRE}
        self._scripts = {
            each: self._redis.register_script(COMMON + script) for each, script in scripts.items()
        }

    async def put(self, record: Record) -> None:
        """See :class:`~atem.server.store.Store`."""
        tenant, now = key_of(record.tenant), self._clock()
        body = pack([record.tenant, record.id, record.body, record.item_ids])
        items = " ".join(f"{tenant}:{key_of(item)}" for item in record.item_ids)
        left = max(record.created + self._bounds.seconds - now, 0)
        await self._run(
            "put",
            _member(record.tenant, record.id),
            record.created,
            int(record.open),
            now,
            body,
            items,
            self._bounds.bytes,
            _milliseconds(left),
            _milliseconds(self._bounds.log_seconds),
        )

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
        return bool(await self._run("delete", _member(tenant, record_id), self._oldest))

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]]
    ) -> None:
        """See :class:`~atem.server.store.Store`."""
        numbered = [(event["sequence_number"] + 1, pack(event)) for event in events]
        lives = _milliseconds(self._bounds.log_seconds)
        flat = [each for pair in numbered for each in pair]
        await self._run("append", _member(tenant, record_id), self._clock(), lives, *flat)

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

    async def unfinished(self) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            members = await self._redis.smembers(f"{self._name}:open")
        found = [await self._get(member.decode()) for member in members]
        return [record for record in found if record is not None]

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
            created, is_open, body = await self._redis.hmget(
                f"{self._name}:record:{member}", "created", "open", "body"
            )
        if created is None or (is_open == b"0" and float(created) <= self._oldest):
            return None
        tenant, record_id, found, items = unpack(body)
        return Record(
            tenant, record_id, float(created), found, open=is_open == b"1", item_ids=tuple(items)
        )

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
