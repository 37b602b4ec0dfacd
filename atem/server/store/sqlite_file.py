"""The SQLite file of a store: where it is, its tables, and how it is opened.

Rules: the file is its user's alone to read. Several servers may open it, or make
it, at the same moment.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from ...errors import OptionError

BUSY_SECONDS: Final = 30.0
VERSION: Final = 1
SCHEMA: Final = (
    """
    CREATE TABLE IF NOT EXISTS records (
        tenant TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, version INTEGER NOT NULL,
        touched REAL NOT NULL, until REAL NOT NULL, ending INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (tenant, id))
    """,
    "CREATE INDEX IF NOT EXISTS records_touched ON records (touched) WHERE owner = ''",
    "CREATE INDEX IF NOT EXISTS records_until ON records (until) WHERE owner <> ''",
    """
    CREATE TABLE IF NOT EXISTS items (
        tenant TEXT NOT NULL, item TEXT NOT NULL, id TEXT NOT NULL,
        PRIMARY KEY (tenant, item)) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS items_record ON items (tenant, id)",
    """
    CREATE TABLE IF NOT EXISTS events (
        tenant TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (tenant, id, number)) WITHOUT ROWID
    """,
    "CREATE TABLE IF NOT EXISTS total (bytes INTEGER NOT NULL)",
    "INSERT INTO total SELECT 0 WHERE NOT EXISTS (SELECT * FROM total)",
    *(
        # Kept by the database itself, whichever statement writes or drops a row.
        f"CREATE TRIGGER IF NOT EXISTS {table}_{event} AFTER {event} ON {table} "  # noqa: S608
        f"BEGIN UPDATE total SET bytes = bytes {change}; END"
        for table in ("records", "events")
        for event, change in (("INSERT", "+ length(new.body)"), ("DELETE", "- length(old.body)"))
    ),
    f"PRAGMA user_version = {VERSION}",
)


def default_path() -> Path:
    """Where a user's responses are kept if nothing else is said."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "atem" / "responses.db"


def opened(path: Path) -> sqlite3.Connection:
    """The file, made if there was none. Raises OptionError for one that can't be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with ExitStack() as stack:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            file = stack.enter_context(closing(connection))
            _prepare(file, path)
            stack.pop_all()
    except (OSError, sqlite3.Error) as error:
        raise OptionError(f"store_path={str(path)!r} can't be used: {error}") from error
    return file


def _prepare(file: sqlite3.Connection, path: Path) -> None:
    _use_log(file)
    for pragma in ("synchronous = NORMAL", "secure_delete = FAST"):
        file.execute(f"PRAGMA {pragma}")
    file.execute("BEGIN IMMEDIATE")  # another server may begin at the same moment
    with file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise OptionError(f"store_path={str(path)!r} was written by a later version of atem")
        for statement in SCHEMA:
            file.execute(statement)


def _use_log(file: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. While another server does the same SQLite waits for nobody."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            file.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
