"""The store in PostgreSQL, which several servers share.

Rules: one statement, or one transaction, for each call. The tables are made by
whichever server comes first, in a schema of their own. Bytes are counted by the
database, in several rows, so that servers don't wait for each other; who holds
one of these rows waits for nothing else, so that nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import MissingExtra, OptionError
from .interface import Bounds
from .network import CONNECTIONS, SECONDS, StoreUnreachable, check, key_of
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

VERSION: Final = 1
LOCK: Final = 0x6174656D
"""Names the advisory locks of this program."""

SCHEMA: Final = """
CREATE SEQUENCE put;
CREATE TABLE records (
    tenant text NOT NULL, id text NOT NULL, put bigint NOT NULL DEFAULT nextval('put'),
    created double precision NOT NULL, touched double precision NOT NULL,
    open boolean NOT NULL, body bytea NOT NULL, items text[] NOT NULL,
    PRIMARY KEY (tenant, id));
CREATE INDEX records_put ON records (put) WHERE NOT open;
CREATE INDEX records_created ON records (created) WHERE NOT open;
CREATE INDEX records_open ON records (put) WHERE open;
CREATE INDEX records_items ON records USING gin (items);
CREATE TABLE events (
    tenant text NOT NULL, id text NOT NULL, number bigint NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (tenant, id, number),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE);
CREATE TABLE total (slot integer PRIMARY KEY, bytes bigint NOT NULL);
INSERT INTO total SELECT slot, 0 FROM generate_series(0, 15) AS slot;
CREATE TABLE version (number integer NOT NULL);

CREATE FUNCTION count_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        change := change + coalesce((SELECT sum(length(body)) FROM added), 0);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        change := change - coalesce((SELECT sum(length(body)) FROM removed), 0);
    END IF;
    UPDATE total SET bytes = bytes + change WHERE slot = pg_backend_pid() % 16 AND change <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER added AFTER INSERT ON records REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER changed AFTER UPDATE ON records
    REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER removed AFTER DELETE ON records REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER added AFTER INSERT ON events REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER removed AFTER DELETE ON events REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();

CREATE FUNCTION make_room(most bigint, of_tenant text, of_id text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sum(bytes) FROM total) > most THEN
        LOCK TABLE version IN EXCLUSIVE MODE;  -- one server at a time, or each drops as much
        WHILE (SELECT sum(bytes) FROM total) > most LOOP
            DELETE FROM records WHERE (tenant, id) IN (
                SELECT tenant, id FROM records
                WHERE NOT open AND (tenant, id) <> (of_tenant, of_id)
                ORDER BY put LIMIT 1 FOR UPDATE SKIP LOCKED);
            EXIT WHEN NOT FOUND;
        END LOOP;
    END IF;
END $$;
"""

PUT: Final = """
INSERT INTO records (tenant, id, created, touched, open, body, items)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, id) DO UPDATE SET
    put = excluded.put, created = excluded.created, touched = excluded.touched,
    open = excluded.open, body = excluded.body, items = excluded.items
"""
GET: Final = """
SELECT created, open, body FROM records
WHERE tenant = $1 AND id = $2 AND (open OR created > $3)
"""
FIND: Final = """
SELECT created, open, body FROM records
WHERE tenant = $1 AND items @> ARRAY[$2::text] AND (open OR created > $3)
ORDER BY put DESC LIMIT 1
"""
DELETE: Final = """
DELETE FROM records WHERE tenant = $1 AND id = $2 RETURNING open OR created > $3
"""
APPEND: Final = """
INSERT INTO events
SELECT tenant, id, number, event
FROM records, unnest($3::bigint[], $4::bytea[]) AS added (number, event)
WHERE tenant = $1 AND id = $2 FOR KEY SHARE OF records
ON CONFLICT DO NOTHING
"""
EVENTS: Final = """
SELECT events.body FROM events JOIN records USING (tenant, id)
WHERE tenant = $1 AND id = $2 AND number > $3 AND (open OR created > $5)
ORDER BY number LIMIT $4
"""
EXPIRE: Final = """
WITH old AS (
    SELECT tenant, id FROM records WHERE NOT open AND created <= $1 FOR UPDATE SKIP LOCKED),
gone AS (
    DELETE FROM records USING old WHERE (records.tenant, records.id) = (old.tenant, old.id)
    RETURNING 1)
SELECT count(*) FROM gone
"""
EXPIRE_LOGS: Final = """
DELETE FROM events USING records
WHERE (events.tenant, events.id) = (records.tenant, records.id) AND NOT open AND touched < $1
"""


class PostgresStore:
    """A :class:`~atem.server.store.Store` in the database at ``url``, in the schema ``name``.

    It connects at its first call. Raises OptionError for an address that can't
    work, MissingExtra without asyncpg, and from every call StoreUnreachable.
    """

    def __init__(
        self,
        url: str,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
        name: str = "atem",
    ) -> None:
        check(url, name, ("postgresql", "postgres"))
        try:
            import asyncpg
        except ImportError as error:
            raise MissingExtra("postgres", "the Postgres store") from error
        self._asyncpg: Any = asyncpg
        self._url = url
        self._name = name
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._pool: Any = None
        self._opening = asyncio.Lock()

    async def put(self, record: Record) -> None:
        """See :class:`~atem.server.store.Store`."""
        key = (key_of(record.tenant), key_of(record.id))
        packed = pack([record.tenant, record.id, record.body, record.item_ids])
        items = [key_of(item) for item in record.item_ids]
        times = (record.created, self._clock())
        async with self._connection() as connection:
            await connection.execute(PUT, *key, *times, record.open, packed, items)
            await connection.execute("SELECT make_room($1, $2, $3)", self._bounds.bytes, *key)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._one(GET, tenant, record_id)

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._one(FIND, tenant, item_id)

    async def delete(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            return bool(
                await connection.fetchval(DELETE, key_of(tenant), key_of(record_id), self._oldest)
            )

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]]
    ) -> None:
        """See :class:`~atem.server.store.Store`."""
        numbers = [event["sequence_number"] for event in events]
        packed = [pack(event) for event in events]
        async with self._connection() as connection:
            await connection.execute(APPEND, key_of(tenant), key_of(record_id), numbers, packed)

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        key = (key_of(tenant), key_of(record_id))
        async with self._connection() as connection:
            rows = await connection.fetch(EVENTS, *key, after, limit, self._oldest)
        return [unpack(row["body"]) for row in rows]

    async def unfinished(self) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        async with self._connection() as connection:
            rows = await connection.fetch("SELECT created, open, body FROM records WHERE open")
        return list(map(_record, rows))

    async def expire(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        silent = self._clock() - self._bounds.log_seconds
        async with self._connection() as connection:
            expired = await connection.fetchval(EXPIRE, self._oldest)
            await connection.execute(EXPIRE_LOGS, silent)
        return int(expired)

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

    @property
    def _oldest(self) -> float:
        """What was created then, or before, is too old."""
        return self._clock() - self._bounds.seconds

    async def _one(self, query: str, tenant: str, name: str) -> Record | None:
        async with self._connection() as connection:
            row = await connection.fetchrow(query, key_of(tenant), key_of(name), self._oldest)
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


def _record(row: Any) -> Record:
    tenant, record_id, body, items = unpack(row["body"])
    return Record(tenant, record_id, row["created"], body, open=row["open"], item_ids=tuple(items))
