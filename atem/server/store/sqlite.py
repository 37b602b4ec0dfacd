"""The store in one SQLite file: the default, which a restart doesn't empty.

Rules: one thread owns the connection, so that the event loop never waits for a
disk; each call is one transaction. The file is its user's alone to read. One
server writes a file: at its start it takes what is open for abandoned.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from ...errors import OptionError
from .interface import Bounds
from .record import Record, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
R = TypeVar("R")

VERSION: Final = 1
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS records (
    put INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, id TEXT NOT NULL,
    created REAL NOT NULL, open INTEGER NOT NULL, touched REAL NOT NULL, body BLOB NOT NULL,
    UNIQUE (tenant, id));
CREATE INDEX IF NOT EXISTS records_created ON records (created);
CREATE INDEX IF NOT EXISTS records_open ON records (open) WHERE open;
CREATE TABLE IF NOT EXISTS items (
    tenant TEXT NOT NULL, item TEXT NOT NULL, id TEXT NOT NULL,
    PRIMARY KEY (tenant, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS items_record ON items (tenant, id);
CREATE TABLE IF NOT EXISTS events (
    tenant TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (tenant, id, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS total (bytes INTEGER NOT NULL);
INSERT INTO total SELECT 0 WHERE NOT EXISTS (SELECT * FROM total);
"""
# The total is kept by the database itself, whichever statement writes or drops a row.
TRIGGERS: Final = """
CREATE TRIGGER IF NOT EXISTS records_in AFTER INSERT ON records
    BEGIN UPDATE total SET bytes = bytes + length(new.body); END;
CREATE TRIGGER IF NOT EXISTS records_out AFTER DELETE ON records
    BEGIN UPDATE total SET bytes = bytes - length(old.body); END;
CREATE TRIGGER IF NOT EXISTS events_in AFTER INSERT ON events
    BEGIN UPDATE total SET bytes = bytes + length(new.body); END;
CREATE TRIGGER IF NOT EXISTS events_out AFTER DELETE ON events
    BEGIN UPDATE total SET bytes = bytes - length(old.body); END;
"""


class SQLiteStore:
    """A :class:`~atem.server.store.Store` in the file ``path``.

    Raises OptionError for a file that can't be opened or is of a later version.
    """

    def __init__(
        self,
        path: str | Path,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = Path(path)
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "atem-store")
        try:
            self._file = self._thread.submit(_opened, self._path).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def put(self, record: Record) -> None:
        """See :class:`~atem.server.store.Store`."""
        packed = pack([record.body, record.item_ids])
        await self._do(_put, record, packed, self._clock(), self._bounds.bytes)

    async def get(self, tenant: str, record_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_get, tenant, record_id, self._oldest)

    async def find(self, tenant: str, item_id: str) -> Record | None:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_find, tenant, item_id, self._oldest)

    async def delete(self, tenant: str, record_id: str) -> bool:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_delete, tenant, record_id, self._oldest)

    async def append_events(
        self, tenant: str, record_id: str, events: Sequence[dict[str, Any]]
    ) -> None:
        """See :class:`~atem.server.store.Store`."""
        rows = [(event["sequence_number"], pack(event)) for event in events]
        await self._do(_append, tenant, record_id, rows)

    async def read_events(
        self, tenant: str, record_id: str, after: int, limit: int = 256
    ) -> list[dict[str, Any]]:
        """See :class:`~atem.server.store.Store`."""
        if await self.get(tenant, record_id) is None:
            return []
        return await self._do(_events, tenant, record_id, after, limit)

    async def unfinished(self) -> list[Record]:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_unfinished)

    async def expire(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_expire, self._clock(), self._bounds)

    async def size(self) -> int:
        """See :class:`~atem.server.store.Store`."""
        return await self._do(_size)

    async def close(self) -> None:
        """See :class:`~atem.server.store.Store`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
        self._thread.shutdown()

    @property
    def _oldest(self) -> float:
        """What was created then, or before, is too old."""
        return self._clock() - self._bounds.seconds

    async def _do(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        def transaction() -> R:
            with self._file:
                return function(self._file, *arguments, **named)

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, transaction)


def default_path() -> Path:
    """Where a user's responses are kept if nothing else is said."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "atem" / "responses.db"


def _opened(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with ExitStack() as stack:
            file = stack.enter_context(closing(sqlite3.connect(path, timeout=30)))
            _prepare(file, path)
            stack.pop_all()
    except (OSError, sqlite3.Error) as error:
        raise OptionError(f"store_path={str(path)!r} can't be used: {error}") from error
    return file


def _prepare(file: sqlite3.Connection, path: Path) -> None:
    (version,) = file.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise OptionError(f"store_path={str(path)!r} was written by a later version of atem")
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = FAST"):
        file.execute(f"PRAGMA {pragma}")
    file.executescript(SCHEMA + TRIGGERS + f"PRAGMA user_version = {VERSION};")


_COLUMNS: Final = "tenant, id, created, open, body"


def _record(row: tuple[Any, ...]) -> Record:
    tenant, record_id, created, is_open, packed = row
    body, items = unpack(packed)
    return Record(tenant, record_id, created, body, open=bool(is_open), item_ids=tuple(items))


def _put(file: sqlite3.Connection, record: Record, body: bytes, now: float, most: int) -> None:
    key = (record.tenant, record.id)
    file.execute("DELETE FROM records WHERE tenant = ? AND id = ?", key)
    file.execute("DELETE FROM items WHERE tenant = ? AND id = ?", key)
    row = (*key, record.created, record.open, body, now)
    file.execute(
        "INSERT INTO records (tenant, id, created, open, body, touched) VALUES (?, ?, ?, ?, ?, ?)",
        row,
    )
    items = [(record.tenant, item, record.id) for item in record.item_ids]
    file.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", items)
    _make_room(file, key, most)


def _get(file: sqlite3.Connection, tenant: str, record_id: str, oldest: float) -> Record | None:
    row = file.execute(
        f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND id = ? AND (open OR created > ?)",  # noqa: S608 (a constant)
        (tenant, record_id, oldest),
    ).fetchone()
    return row and _record(row)


def _find(file: sqlite3.Connection, tenant: str, item_id: str, oldest: float) -> Record | None:
    row = file.execute(
        "SELECT id FROM items WHERE tenant = ? AND item = ?", (tenant, item_id)
    ).fetchone()
    return row and _get(file, tenant, row[0], oldest)


def _delete(file: sqlite3.Connection, tenant: str, record_id: str, oldest: float) -> bool:
    was = _get(file, tenant, record_id, oldest) is not None
    _drop(file, [(tenant, record_id)])
    return was


def _append(
    file: sqlite3.Connection, tenant: str, record_id: str, rows: list[tuple[int, bytes]]
) -> None:
    there = "SELECT 1 FROM records WHERE tenant = ? AND id = ?"
    if file.execute(there, (tenant, record_id)).fetchone():
        file.executemany(
            "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)",
            [(tenant, record_id, *row) for row in rows],
        )


def _events(
    file: sqlite3.Connection, tenant: str, record_id: str, after: int, limit: int
) -> list[dict[str, Any]]:
    rows = file.execute(
        "SELECT body FROM events WHERE tenant = ? AND id = ? AND number > ? "
        "ORDER BY number LIMIT ?",
        (tenant, record_id, after, limit),
    )
    return [unpack(body) for (body,) in rows]


def _unfinished(file: sqlite3.Connection) -> list[Record]:
    rows = file.execute(f"SELECT {_COLUMNS} FROM records WHERE open")  # noqa: S608 (a constant)
    return list(map(_record, rows))


def _expire(file: sqlite3.Connection, now: float, bounds: Bounds) -> int:
    rows = file.execute(
        "SELECT tenant, id FROM records WHERE NOT open AND created <= ?", (now - bounds.seconds,)
    ).fetchall()
    _drop(file, rows)
    file.execute(
        "DELETE FROM events WHERE (tenant, id) IN "
        "(SELECT tenant, id FROM records WHERE NOT open AND touched < ?)",
        (now - bounds.log_seconds,),
    )
    return len(rows)


def _size(file: sqlite3.Connection) -> int:
    (size,) = file.execute("SELECT bytes FROM total").fetchone()
    return int(size)


def _make_room(file: sqlite3.Connection, newest: tuple[str, str], most: int) -> None:
    while _size(file) > most:
        rows = file.execute(
            "SELECT tenant, id FROM records WHERE NOT open AND (tenant, id) != (?, ?) "
            "ORDER BY put LIMIT 16",
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
