"""What a database is made of, and how one of an earlier version becomes one of the present."""

import sqlite3
from pathlib import Path

from unbasket.errors import StoreCorruptError, StoreError, StoreVersionError
from unbasket.store.row_codec import TABLES
from unbasket.store.row_totals import Entry
from unbasket.store.sides import SIDED, other_side

PAGE = 2048
"""Bytes of a page. With small pages, a commit writes and allocates less of the log."""

BUSY_TIMEOUT = 200
"""Milliseconds that SQLite waits for a lock."""

_APPLICATION = int.from_bytes(b"unbk", "big")
_VERSION = 4
_SINCE = {"hidden": 2, "suppressed": 3, **{other_side(table): 4 for table in SIDED}}  # versions with further tables
_ALL = (*TABLES, "ledger", *map(other_side, SIDED))
_COLUMNS = [(0, "id", "INTEGER", 0, None, 1), (1, "body", "BLOB", 1, None, 0)]
_CREATE = "CREATE {} {} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
_INCREMENTAL = 2
# With "synchronous = FULL", SQLite would sync at each commit; `Database.sync` does that instead.
_PRAGMAS = (
    f"page_size = {PAGE}",
    "temp_store = MEMORY",
    "secure_delete = ON",
    "synchronous = NORMAL",
    f"busy_timeout = {BUSY_TIMEOUT}",
)
_MIGRATIONS = (
    (
        *(_CREATE.format("TABLE", table) for table in _ALL if table not in _SINCE),
        f"INSERT INTO ledger VALUES (1, x'{Entry(0, 0, 0, 0).to_bytes().hex()}')",
        f"PRAGMA application_id = {_APPLICATION}",
    ),
    *(
        tuple(_CREATE.format("TABLE", table) for table, since in _SINCE.items() if since == version)
        for version in range(2, _VERSION + 1)
    ),
)


def prepare(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Set a connection up, and make its file one of the present version; an error if it is none of ours."""
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    version = _checked_version(connection, path, read_only)
    if not read_only:
        if version == 0:
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path}: its file system can't hold a write-ahead log; use a local disk")
        _check_writable(connection, version)
        _migrate(connection, version)
    for table in [table for table, since in _SINCE.items() if read_only and since > version]:
        connection.execute(_CREATE.format("TEMP TABLE", table))  # an older file has none yet, and so none of its rows
    if any(connection.execute(f"PRAGMA table_info({table})").fetchall() != _COLUMNS for table in _ALL):
        raise StoreCorruptError(f"{path} is damaged: its tables have other columns. Restore a backup")


def _checked_version(connection: sqlite3.Connection, path: Path, read_only: bool) -> int:
    execute = connection.execute
    [application], [version] = (execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
    empty = execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if empty and not read_only:
        return 0
    if application != _APPLICATION:
        raise StoreVersionError(f"{path} is not a database of unbasket. Choose another file")
    if version > _VERSION:
        raise StoreVersionError(
            f"{path} has version {version}, and this program knows {_VERSION} at most. Upgrade unbasket"
        )
    if version < 1:
        raise StoreCorruptError(f"{path} is damaged: it has version {version}. Restore a backup")
    return int(version)


def _check_writable(connection: sqlite3.Connection, version: int) -> None:
    """Check that writing would succeed: SQLite also opens files that it may not write to."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA user_version = {version}")
    finally:
        connection.execute("ROLLBACK")


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the schema from a version to the present one, each step in a transaction of its own."""
    for step in range(version, _VERSION):
        connection.execute("BEGIN IMMEDIATE")
        for statement in _MIGRATIONS[step]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step + 1}")
        connection.execute("COMMIT")
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:  # an older file is rebuilt once
        connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        connection.execute("VACUUM")
