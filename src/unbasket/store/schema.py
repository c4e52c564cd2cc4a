"""The schema of a database: its tables, the settings of a connection, and the version."""

import sqlite3
from pathlib import Path

from unbasket.errors import StoreCorruptError, StoreError, StoreVersionError
from unbasket.store.row_codec import TABLES
from unbasket.store.row_totals import RowTotals

PAGE = 2048
"""Bytes of a page. With small pages, a commit writes and allocates less of the write-ahead log."""

BUSY_TIMEOUT = 200
"""Milliseconds that SQLite waits for a lock."""

COMPACTED = ("baskets", "products", "hidden", "suppressed")
"""The tables whose rows may be zeroed. Each has a second table, to which a compaction copies rows."""


def second_table(table: str) -> str:
    """Return the name of the second table; the first has the name of the table itself."""
    return f"{table}_2"


_APPLICATION = int.from_bytes(b"unbk", "big")
_VERSION = 7
_ALL = (*TABLES, "row_totals", *map(second_table, COMPACTED))
_COLUMNS = [(0, "id", "INTEGER", 0, None, 1), (1, "body", "BLOB", 1, None, 0)]
# With "synchronous = FULL", SQLite would sync at each commit; `Database.sync` does that instead. It also checkpoints:
# SQLite would ignore the errors of a checkpoint after a commit.
_PRAGMAS = (
    f"page_size = {PAGE}",
    "temp_store = MEMORY",
    "secure_delete = ON",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 0",
    f"busy_timeout = {BUSY_TIMEOUT}",
)


def prepare(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Set a connection up and create the tables of a new file; an error if the file is not one of this version."""
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    is_new = not read_only and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if not is_new:
        _check_version(connection, path)
    if not read_only:
        if is_new:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path}: its file system can't hold a write-ahead log; use a local disk")
        _check_writable(connection)
    if is_new:
        _create_tables(connection)
    if any(connection.execute(f"PRAGMA table_info({table})").fetchall() != _COLUMNS for table in _ALL):
        raise StoreCorruptError(f"{path} is damaged: its tables have other columns. Restore a backup")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    [application], [version] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise StoreVersionError(f"{path} is not a database of unbasket. Choose another file")
    if version > _VERSION:
        raise StoreVersionError(
            f"{path} has version {version}, and this program knows {_VERSION} at most. Upgrade unbasket"
        )
    if version < 1:
        raise StoreCorruptError(f"{path} is damaged: it has version {version}. Restore a backup")
    if version < _VERSION:
        raise StoreVersionError(
            f"{path} has version {version}, and this program reads version {_VERSION}. With the version of "
            "unbasket that made it, write its baskets as events, and import these: see docs/store.md#moving-a-shop"
        )


def _check_writable(connection: sqlite3.Connection) -> None:
    """Check that writing would succeed: SQLite also opens files that it may not write to."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    finally:
        connection.execute("ROLLBACK")


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in _ALL:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    connection.execute("INSERT INTO row_totals VALUES (1, ?)", (RowTotals().record().to_bytes(),))
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
