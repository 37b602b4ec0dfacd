"""The store in PostgreSQL, which several servers share.

Rules: a call is one statement (:mod:`.postgres_sql`), and room is made behind it
by another. The tables are made by whichever server comes first, in a schema of
their own.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import MissingExtra, OptionError
from .growth import Growing
from .network import CONNECTIONS, POLL, SECONDS, StoreUnreachable, check, key_of
from .postgres_sql import (
    APPEND,
    CANCEL,
    DELETE,
    EVENTS,
    EXPIRE,
    EXPIRE_LOGS,
    FIND,
    GET,
    PUT,
    PUT_NEW,
    RENEW,
    SCHEMA,
    TAKE_OVER,
)
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from .interface import Bounds, Key

VERSION: Final = 1
LOCK: Final = 0x6174656D
"""Names the advisory locks of this program."""


class PostgresStore(Growing):
    """A :class:`~atem.server.store.Store` in the database at ``url``, in the schema ``name``.

    It connects at its first call. Raises OptionError for an address that can't
    work, MissingExtra without asyncpg, and from every call StoreUnreachable.
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
        check(url, name, ("postgresql", "postgres"))
        try:
            import asyncpg
        except ImportError as error:
            raise MissingExtra("postgres", "the Postgres store") from error
        self._asyncpg: Any = asyncpg
        self._url = url
        self._name = name
        self._pool: Any = None
        self._opening = asyncio.Lock()

    async def put(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """See :class:`~atem.server.store.Store`."""
        row = (*self._row(record), *_columns(events))
        put = (PUT, *row, record.version) if record.version else (PUT_NEW, *row)
        room = (self._bounds.bytes, *_keys(record.tenant, record.id))
        async with self._connection() as connection:
            version = await connection.fetchval(*put)
            if version is None:
                return 0
            await connection.execute("SELECT make_room($1, $2, $3)", *room)
        self._tell(record.tenant, record.id)
        return int(version)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._one(GET, tenant, record_id)

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._one(FIND, tenant, item_id)

    async def delete(self, tenant: str, record_id: str) -> None:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            await connection.execute(DELETE, *_keys(tenant, record_id))
        self._tell(tenant, record_id)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str
    ) -> bool:
        """See :class:`~atem.server.store.Store`."""
        row = (*_keys(tenant, record_id), owner, *_columns(events))
        async with self._connection() as connection:
            done = await connection.fetchval(APPEND, *row)
        self._tell(tenant, record_id)
        return bool(done)

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            rows = await connection.fetch(EVENTS, *_keys(tenant, record_id), after, limit)
        return [unpack(row["body"]) for row in rows]

    async def renew(self, owner: str, keys: Iterable[Key]) -> dict[Key, bool]:
        """See :class:`~atem.server.store.Store`."""
        wanted = {_keys(*key): key for key in keys}
        until = self._clock() + self._bounds.lease_seconds
        columns = [key[0] for key in wanted], [key[1] for key in wanted]
        async with self._connection() as connection:
            rows = await connection.fetch(RENEW, owner, until, *columns)
        return {wanted[row["tenant"], row["id"]]: row["ending"] for row in rows}

    async def cancel(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            return bool(await connection.fetchval(CANCEL, *_keys(tenant, record_id)))

    async def take_over(self, owner: str) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        async with self._connection() as connection:
            rows = await connection.fetch(TAKE_OVER, owner, now, now + self._bounds.lease_seconds)
        return list(map(_record, rows))

    async def expire(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        now = self._clock()
        async with self._connection() as connection:
            await connection.execute(EXPIRE, now - self._bounds.seconds)
            await connection.execute(EXPIRE_LOGS, now - self._bounds.log_seconds)

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            return int(await connection.fetchval("SELECT sum(bytes) FROM total"))

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(SECONDS):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    def _row(self, record: Record) -> tuple[Any, ...]:
        now = self._clock()
        packed = pack([record.tenant, record.id, record.body, record.item_ids])
        items = [key_of(item) for item in record.item_ids]
        lease = (now, record.owner, now + self._bounds.lease_seconds)
        return (*_keys(record.tenant, record.id), *lease, packed, items)

    async def _one(self, query: str, tenant: str, name: str) -> Record | None:
        async with self._connection() as connection:
            row = await connection.fetchrow(query, *_keys(tenant, name))
        return None if row is None else _record(row)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Any, None]:
        """A connection of the pool. One that broke fails its call, and isn't used again."""
        try:
            if self._pool is None:
                await self._open()
            async with self._pool.acquire(timeout=SECONDS) as connection:
                yield connection
        except (OSError, self._asyncpg.PostgresError, self._asyncpg.InterfaceError) as error:
            # No text of the server's: it may quote what was to be stored.
            raise StoreUnreachable(f"the Postgres store: {type(error).__name__}") from error

    async def _open(self) -> None:
        async with self._opening:
            if self._pool is None:
                pool = await self._asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=CONNECTIONS,
                    timeout=SECONDS,
                    command_timeout=SECONDS,
                    server_settings={"search_path": self._name, "application_name": "atem-serve"},
                )
                try:
                    async with pool.acquire() as connection, connection.transaction():
                        await _prepare(connection, self._name)
                except BaseException:
                    pool.terminate()
                    raise
                self._pool = pool


async def _prepare(connection: Any, name: str) -> None:
    """Make the tables, unless another server has."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
    if await connection.fetchval("SELECT to_regnamespace($1)", name) is None:
        await connection.execute(
            await connection.fetchval("SELECT format('CREATE SCHEMA %I', $1::text)", name)
        )
    if await connection.fetchval("SELECT to_regclass('version')") is None:
        await connection.execute(SCHEMA)
        await connection.execute("INSERT INTO version VALUES ($1)", VERSION)
    if await connection.fetchval("SELECT max(number) FROM version") > VERSION:
        raise OptionError(f"the schema {name!r} was made by a later version of atem")


def _keys(tenant: str, name: str) -> tuple[str, str]:
    return key_of(tenant), key_of(name)


def _columns(events: Sequence[dict[str, Any]]) -> tuple[list[int], list[bytes]]:
    return [event["sequence_number"] for event in events], [pack(event) for event in events]


def _record(row: Any) -> Record:
    owner, version, packed = row
    tenant, record_id, body, items = unpack(packed)
    return Record(tenant, record_id, body, tuple(items), owner, version)
