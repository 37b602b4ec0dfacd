"""The store in one SQLite file: the default, which a restart doesn't empty.

Rules: one thread owns the connection, so that the event loop never waits for a
disk; each call is one transaction, and one that writes locks the file before it
reads, so that several servers of one machine can share it.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from .growth import Growing
from .record import Record, pack, unpack
from .sqlite_file import default_path, opened

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from .interface import Bounds, Key

__all__ = ["SQLiteStore", "default_path"]

P = ParamSpec("P")
R = TypeVar("R")


class SQLiteStore(Growing):
    """A :class:`~atem.server.store.Store` in the file ``path``.

    Raises OptionError for a file that can't be opened or is of a later version.
    """

    poll = 0.1
    """Nobody tells this process what others write."""

    def __init__(
        self,
        path: str | Path,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(bounds, clock)
        self._thread = ThreadPoolExecutor(1, "atem-store")
        try:
            self._file = self._thread.submit(opened, Path(path)).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def put(self, record: Record, events: Sequence[dict[str, Any]] = ()) -> int:
        """See :class:`~atem.server.store.Store`."""
        packed = pack([record.body, record.item_ids])
        version = await self._write(
            _put, record, packed, _rows(events), now=self._clock(), bounds=self._bounds
        )
        if version:
            self._tell(record.tenant, record.id)
        return version

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._read(_get, tenant, _encodable(record_id))

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._read(_find, tenant, _encodable(item_id))

    async def delete(self, tenant: str, record_id: str) -> None:
        """See :class:`~atem.server.store.Store`."""
        await self._write(_drop, [(tenant, record_id)])
        self._tell(tenant, record_id)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]], owner: str
    ) -> bool:
        """See :class:`~atem.server.store.Store`."""
        done = await self._write(_append, tenant, record_id, _rows(events), owner)
        self._tell(tenant, record_id)
        return done

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        return await self._read(_events, (tenant, record_id), after, limit)

    async def renew(self, owner: str, keys: Iterable[Key]) -> dict[Key, bool]:
        """See :class:`~atem.server.store.Store`."""
        until = self._clock() + self._bounds.lease_seconds
        return await self._write(_renew, owner, list(keys), until)

    async def cancel(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        return await self._write(_cancel, tenant, record_id)

    async def take_over(self, owner: str) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        return await self._write(_take_over, owner, self._clock(), self._bounds.lease_seconds)

    async def expire(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        await self._write(_expire, self._clock(), self._bounds)

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        return await self._read(_size)

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
        self._thread.shutdown()

    async def _read(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        return await self._do("BEGIN", function, *arguments, **named)

    async def _write(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        # One that begins as a reader can't go on as a writer once another has written.
        return await self._do("BEGIN IMMEDIATE", function, *arguments, **named)

    async def _do(
        self,
        begin: str,
        function: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        def transaction() -> R:
            with self._file:
                self._file.execute(begin)
                return function(self._file, *arguments, **named)

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, transaction)


_COLUMNS: Final = "tenant, id, owner, version, body"


def _encodable(name: str) -> str:
    """``name``, or another that nobody has: half a character has no form in the file."""
    return name.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def _record(row: tuple[Any, ...]) -> Record:
    tenant, record_id, owner, version, packed = row
    body, items = unpack(packed)
    return Record(tenant, record_id, body, tuple(items), owner, version)


def _rows(events: Sequence[dict[str, Any]]) -> list[tuple[int, bytes]]:
    return [(event["sequence_number"], pack(event)) for event in events]


def _put(
    file: sqlite3.Connection,
    record: Record,
    body: bytes,
    events: list[tuple[int, bytes]],
    *,
    now: float,
    bounds: Bounds,
) -> int:
    key = (record.tenant, record.id)
    version, ending = file.execute(
        "SELECT version, ending FROM records WHERE tenant = ? AND id = ?", key
    ).fetchone() or (0, False)
    if version != record.version:
        return 0
    file.execute("DELETE FROM records WHERE tenant = ? AND id = ?", key)
    file.execute("DELETE FROM items WHERE tenant = ? AND id = ?", key)
    lease = (now + bounds.lease_seconds, record.open and ending)
    file.execute(
        "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, record.owner, version + 1, now, *lease, body),
    )
    items = [(record.tenant, item, record.id) for item in record.item_ids]
    file.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", items)
    _add(file, *key, events)
    _make_room(file, key, bounds.bytes)
    return int(version) + 1


def _get(file: sqlite3.Connection, tenant: str, record_id: str) -> Record | None:
    row = file.execute(
        f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND id = ?",  # noqa: S608 (a constant)
        (tenant, record_id),
    ).fetchone()
    return row and _record(row)


def _find(file: sqlite3.Connection, tenant: str, item_id: str) -> Record | None:
    row = file.execute(
        "SELECT id FROM items WHERE tenant = ? AND item = ?", (tenant, item_id)
    ).fetchone()
    return row and _get(file, tenant, row[0])


def _append(
    file: sqlite3.Connection, tenant: str, record_id: str, rows: list[tuple[int, bytes]], owner: str
) -> bool:
    there = "SELECT 1 FROM records WHERE tenant = ? AND id = ? AND owner = ?"
    if not file.execute(there, (tenant, record_id, owner)).fetchone():
        return False
    _add(file, tenant, record_id, rows)
    return True


def _add(
    file: sqlite3.Connection, tenant: str, record_id: str, rows: list[tuple[int, bytes]]
) -> None:
    file.executemany(
        "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)",
        [(tenant, record_id, *row) for row in rows],
    )


def _events(file: sqlite3.Connection, key: Key, after: int, limit: int) -> list[dict[str, Any]]:
    rows = file.execute(
        "SELECT body FROM events WHERE tenant = ? AND id = ? AND number > ? "
        "ORDER BY number LIMIT ?",
        (*key, after, limit),
    )
    return [unpack(body) for (body,) in rows]


def _renew(file: sqlite3.Connection, owner: str, keys: list[Key], until: float) -> dict[Key, bool]:
    held: dict[Key, bool] = {}
    for key in keys:
        row = file.execute(
            "UPDATE records SET until = ? WHERE tenant = ? AND id = ? AND owner = ? "
            "RETURNING ending",
            (until, *key, owner),
        ).fetchone()
        if row is not None:
            held[key] = bool(row[0])
    return held


def _cancel(file: sqlite3.Connection, tenant: str, record_id: str) -> bool:
    asked = "UPDATE records SET ending = 1 WHERE tenant = ? AND id = ? AND owner <> ''"
    return file.execute(asked, (tenant, record_id)).rowcount > 0


def _take_over(
    file: sqlite3.Connection, owner: str, now: float, lease_seconds: float
) -> list[Record]:
    rows = file.execute(
        "UPDATE records SET owner = ?, version = version + 1, until = ? "  # noqa: S608 (a constant)
        f"WHERE owner <> '' AND until <= ? RETURNING {_COLUMNS}",
        (owner, now + lease_seconds, now),
    ).fetchall()
    return list(map(_record, rows))


def _expire(file: sqlite3.Connection, now: float, bounds: Bounds) -> None:
    rows = file.execute(
        "SELECT tenant, id FROM records WHERE owner = '' AND touched <= ?",
        (now - bounds.seconds,),
    ).fetchall()
    _drop(file, rows)
    file.execute(
        "DELETE FROM events WHERE (tenant, id) IN "
        "(SELECT tenant, id FROM records WHERE owner = '' AND touched < ?)",
        (now - bounds.log_seconds,),
    )


def _size(file: sqlite3.Connection) -> int:
    (size,) = file.execute("SELECT bytes FROM total").fetchone()
    return int(size)


def _make_room(file: sqlite3.Connection, newest: tuple[str, str], most: int) -> None:
    while _size(file) > most:
        rows = file.execute(
            "SELECT tenant, id FROM records WHERE owner = '' AND (tenant, id) <> (?, ?) "
            "ORDER BY touched LIMIT 16",
            newest,
        ).fetchall()
        if not rows:
            return
        for row in rows:
            if _size(file) > most:
                _drop(file, [row])


def _drop(file: sqlite3.Connection, keys: list[tuple[str, str]]) -> None:
    for table in ("records", "items", "events"):
        file.executemany(f"DELETE FROM {table} WHERE tenant = ? AND id = ?", keys)  # noqa: S608
