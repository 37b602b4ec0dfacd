"""The store in Redis, which several servers share; event logs are streams.

Rules: each call that changes something is one script (:mod:`.redis_lua`). Redis
drops what is too old by itself, some time after this program would have, so that
nothing stays of servers that never came back.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import MissingExtra, OptionError
from .growth import Growing
from .network import CONNECTIONS, POLL, SECONDS, StoreUnreachable, check, key_of
from .record import Record, pack, unpack
from .redis_lua import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from .interface import Bounds, Key

GRACE: Final = 86400.0
"""Seconds that Redis keeps a thing after it has become too old."""

PAGE: Final = 500
"""Records that one script drops; others wait for it."""

FIELDS: Final = ("owner", "version", "body")


class RedisStore(Growing):
    """A :class:`~atem.server.store.Store` in the Redis at ``url``, under keys of a name.

    It connects at its first call. Raises OptionError for an address that can't
    work, MissingExtra without redis, and from every call StoreUnreachable.
    """

    poll = POLL

    def __init__(
        self,
        url: str,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
        name: str = "atem",
    ) -> None:
        super().__init__(bounds, clock)
        check(url, name, ("redis", "rediss", "unix"))
        try:
            from redis import exceptions
        except ImportError as error:
            raise MissingExtra("redis", "the Redis store") from error
        self._errors: Any = (OSError, exceptions.RedisError)
        self._redis: Any = _client(url)
        self._name = name
        self._scripts = {
            name: self._redis.register_script(script) for name, script in SCRIPTS.items()
        }

    async def put(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """See :class:`~atem.server.store.Store`."""
        now, bounds = self._clock(), self._bounds
        version = await self._run(
            "put",
            _member(record.tenant, record.id),
            record.version,
            record.owner,
            pack([record.tenant, record.id, record.body, record.item_ids]),
            " ".join(_member(record.tenant, item) for item in record.item_ids),
            now,
            now + bounds.lease_seconds,
            bounds.bytes,
            _milliseconds(bounds.seconds),
            _milliseconds(bounds.log_seconds),
            *_pairs(events),
        )
        if version:
            self._tell(record.tenant, record.id)
        return int(version)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._get(_member(tenant, record_id))

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            member = await self._redis.get(f"{self._name}:item:{_member(tenant, item_id)}")
        return None if member is None else await self._get(member.decode())

    async def delete(self, tenant: str, record_id: str) -> None:
        """See :class:`~atem.server.store.Store`."""
        await self._run("delete", _member(tenant, record_id))
        self._tell(tenant, record_id)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str
    ) -> bool:
        """See :class:`~atem.server.store.Store`."""
        member = _member(tenant, record_id)
        done = await self._run("append", member, owner, *_pairs(events))
        self._tell(tenant, record_id)
        return bool(done)

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        log = f"{self._name}:log:{_member(tenant, record_id)}"
        with self._reached():
            rows = await self._redis.xrange(log, min=f"{max(after + 2, 0)}-0", count=limit)
        return [unpack(fields[b"e"]) for _, fields in rows]

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

    async def expire(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        times = (now - self._bounds.seconds, now - self._bounds.log_seconds)
        while max(await self._run("expire", *times, PAGE)) == PAGE:
            pass

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            return int(await self._redis.get(f"{self._name}:bytes") or 0)

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        with self._reached():
            await self._redis.aclose()

    async def _get(self, member: str) -> Record | None:
        with self._reached():
            row = await self._redis.hmget(f"{self._name}:record:{member}", *FIELDS)
        return None if row[0] is None else _record(row)

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
    owner, version, packed = row
    tenant, record_id, body, items = unpack(packed)
    return Record(tenant, record_id, body, tuple(items), owner.decode(), int(version))


def _milliseconds(seconds: float) -> int:
    return int((seconds + GRACE) * 1000)


def _client(url: str) -> Any:
    """A client with a bounded pool. A call whose answer is lost fails: it may have been done."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=SECONDS,
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError:
        raise OptionError("store_url can't be read as the address of a Redis") from None
    return Redis.from_pool(pool)
