"""The SQLite file: tables of sealed rows that are appended or blanked, never moved.

Erasure rests on what SQLite does with such tables, and was measured: a body that is overwritten by as many zeros
changes in place, so that no page keeps a copy, and a truncating checkpoint leaves nothing in the write-ahead log.
Deleting rows, an index, or rows that change their size would leave fragments in unallocated parts of pages.
"""

import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from unbasket.errors import StoreCorruptError, StoreError, StoreVersionError, UncertainError
from unbasket.files import create, replacing
from unbasket.store.faults import explained, explanation
from unbasket.store.log import Log, log_of
from unbasket.store.rows import TABLES, seal_of, sealed, unsealed

Progress = Callable[[int, int], object]

_APPLICATION = int.from_bytes(b"unbk", "big")
_VERSION = 1
_COLUMNS = [(0, "id", "INTEGER", 0, None, 1), (1, "body", "BLOB", 1, None, 0)]
_COUNTED = ("settings", "baskets", "products")  # receipts are a chain, which shows its own damage
_INSERT = {table: f"INSERT INTO {table} VALUES (?, ?)" for table in TABLES}
_LEDGER = struct.Struct(">QQQQ")
PATIENCE = 30
"""Seconds that a forget waits for readers of old pages."""

_WORTH_COMPACTING = 10_000  # a file with fewer blank rows is left as it is
# With small pages, a commit writes and allocates less of the log. With "synchronous = FULL", SQLite would sync at each
# commit; `settle` does that instead.
_PRAGMAS = (
    "page_size = 2048",
    "temp_store = MEMORY",
    "secure_delete = ON",
    "synchronous = NORMAL",
    "busy_timeout = 200",
)


class Database:
    """An open file. One thread at a time may call its methods."""

    def __init__(self, path: Path, *, read_only: bool, trusted: bool = False) -> None:
        """A `trusted` file is open already: its pages are not checked, which would take as long as reading them."""
        self.path = path
        self._log = Log(path)
        self._read_only = read_only
        self._last = dict.fromkeys(TABLES, 0)
        self._count = self._sum = self._blanks = 0
        self._ledger_due = False
        self._blanked = self._unsettled = not read_only  # a crash may have left something to erase, or to sync
        self.hindrance = ""
        with explained(path):
            self._connection = _connect(path, read_only)
            try:
                self._prepare()
                if not trusted:
                    self._check_pages()
                self._find_last()
            except BaseException:
                self.abandon()
                raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        for pragma in _PRAGMAS:
            execute(f"PRAGMA {pragma}")
        version = self._checked_version()
        if not self._read_only:
            if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise StoreError(f"{self.path}: its file system can't hold a write-ahead log; use a local disk")
            self._check_writable(version)
            self._migrate(version)
        if any(execute(f"PRAGMA table_info({table})").fetchall() != _COLUMNS for table in (*TABLES, "ledger")):
            raise StoreCorruptError(f"{self.path} is damaged: its tables have other columns. Restore a backup")

    def _check_writable(self, version: int) -> None:
        """Check that writing would succeed: SQLite also opens files that it may not write to."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.execute(f"PRAGMA user_version = {version}")
        finally:
            self._connection.execute("ROLLBACK")

    def _checked_version(self) -> int:
        execute = self._connection.execute
        [application], [version] = (execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
        empty = execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if empty and not self._read_only:
            return 0
        if application != _APPLICATION:
            raise StoreVersionError(f"{self.path} is not a database of unbasket. Choose another file")
        if version > _VERSION:
            raise StoreVersionError(
                f"{self.path} has version {version}, and this program knows {_VERSION} at most. Upgrade unbasket"
            )
        if version < 1:
            raise StoreCorruptError(f"{self.path} is damaged: it has version {version}. Restore a backup")
        return int(version)

    def _migrate(self, version: int) -> None:
        """Bring the schema from a version to the present one, each step in a transaction of its own."""
        for step in range(version, _VERSION):
            self._begin()
            for statement in _MIGRATIONS[step]:
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {step + 1}")
            self.commit()
            self.settle()

    def _check_pages(self) -> None:
        """Have SQLite check its pages; `load` checks their content."""
        [[verdict]] = self._connection.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            raise StoreCorruptError(f"{self.path} is damaged ({verdict}). Restore a backup")

    # Reading ----------------------------------------------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written."""
        return self._last["settings"] == 0

    def payload(self, table: str, row: int) -> bytes:
        """What a row holds; an error if there is no such row."""
        return unsealed(table, row, self._body(table, row))

    def last_payload(self, table: str) -> bytes | None:
        """What the newest row of a table holds."""
        return self.payload(table, self._last[table]) if self._last[table] else None

    def payloads(self, table: str, first: int = 1, last: int = 2**62) -> Iterator[tuple[int, bytes]]:
        """The rows of a table that were not erased, with their numbers: all, or those from `first` to `last`."""
        with explained(self.path):
            chosen = f"SELECT id, body FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id"
            for row, body in self._connection.execute(chosen, (first, last)):
                payload = unsealed(table, row, body)
                if payload:
                    yield row, payload

    def load(self, progress: Progress | None) -> dict[str, dict[int, bytes]]:
        """The rows of all tables but the receipts, by their numbers: of one moment, and none of them lost."""
        with explained(self.path):
            self._connection.execute("BEGIN")  # an erasure waits for this snapshot to end: read now, decode later
            try:
                self._find_last()
                ledger = self._ledger()
                bodies = {table: self._connection.execute(f"SELECT * FROM {table}").fetchall() for table in _COUNTED}
            finally:
                self._connection.execute("ROLLBACK")
        loaded = {table: _unsealed_all(table, rows, progress) for table, rows in bodies.items()}
        self._count = sum(len(rows) for rows in loaded.values())
        self._sum = sum(seal_of(body) for rows in bodies.values() for _, body in rows)  # an erased row has seal 0
        self._blanks = sum(len(rows) for rows in bodies.values()) - self._count
        self._check(ledger, bodies["baskets"])
        return loaded

    def _check(self, ledger: tuple[int, int, int, int], baskets: list[tuple[int, bytes]]) -> None:
        """Compare what was read with the ledger: which rows there were when it was written, and all since."""
        upto, count, total, receipts = ledger
        since = [body for row, body in baskets if row > upto]
        expected = count + len(since), total + sum(map(seal_of, since)), self._last["baskets"] - upto, receipts
        found = self._count, self._sum, len(since), self._last["receipts"]
        if found != expected or not all(map(any, since)):  # the ledger is written with every row that is erased
            raise StoreCorruptError(
                f"{self.path} is damaged: it has {self._count} rows and {self._last['receipts']} receipts where "
                f"{expected[0]} and {receipts} should be, or their checksums differ. Restore a backup"
            )

    def _find_last(self) -> None:
        for table in TABLES:
            self._last[table] = self._connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]

    def _ledger(self) -> tuple[int, int, int, int]:
        """As of its writing: the newest basket, the count of rows, the sum of their seals, the newest receipt."""
        row = self._connection.execute("SELECT body FROM ledger").fetchone()
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != _LEDGER.size:
            raise StoreCorruptError(f"{self.path} is damaged: its ledger is missing. Restore a backup")
        upto, count, total, receipts = _LEDGER.unpack(row[0])
        return upto, count, total, receipts

    def _body(self, table: str, row: int) -> bytes:
        found = self._connection.execute(f"SELECT body FROM {table} WHERE id = ?", (row,)).fetchone()
        if found is None:
            raise StoreCorruptError(f"{self.path} is damaged: row {row} of {table} is missing. Restore a backup")
        body: bytes = found[0]
        return body

    # Writing ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start a transaction with its first write: of what is written until `commit`, all will be there or nothing."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the transaction, if there is one: what was written is there, and on disk after `settle`."""
        if not self._connection.in_transaction:
            return
        self._unsettled = True
        try:
            if self._ledger_due:
                ledger = _LEDGER.pack(self._last["baskets"], self._count, self._sum, self._last["receipts"])
                self._connection.execute("UPDATE ledger SET body = ?", (ledger,))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explanation(self.path, error) from error
        self._ledger_due = False

    def settle(self) -> None:
        """Return when all that was committed is on disk."""
        if not self._unsettled:
            return
        try:
            self._log.synchronise()
        except OSError as error:
            raise UncertainError(
                f"{self.path}: the disk did not confirm what was written ({error}): it may be there after a restart, "
                "or not. Nothing more is written. Check the disk, open the database again, and look"
            ) from error
        self._unsettled = False

    def roll_back(self) -> None:
        """End a transaction that went wrong, if it is not over yet, and know again what is on disk."""
        with explained(self.path):
            if self._connection.in_transaction:
                self._blanked = True  # a large transaction has written to the log already, where it would stay
                self._connection.execute("ROLLBACK")
            self._find_last()
            upto, self._count, self._sum, _ = self._ledger()
            for [body] in self._connection.execute("SELECT body FROM baskets WHERE id > ?", (upto,)):
                self._count += 1
                self._sum += seal_of(body)
        self._ledger_due = False

    def next_row(self, table: str) -> int:
        """The number that the next row of a table will have."""
        return self._last[table] + 1

    def append(self, table: str, payload: bytes) -> int:
        """Add a row and return its number."""
        self._begin()
        row, body = self._numbered(table, payload)
        self._connection.execute(_INSERT[table], (row, body))
        self._ledger_due |= table != "baskets"
        return row

    def append_baskets(self, payloads: Iterable[bytes]) -> range:
        """Add rows of baskets and return their numbers."""
        self._begin()
        first = self.next_row("baskets")
        rows = (self._numbered("baskets", payload) for payload in payloads)
        self._connection.executemany(_INSERT["baskets"], rows)
        return range(first, self.next_row("baskets"))

    def append_alone(self, payload: bytes) -> int:
        """Add a row of a basket in a transaction of its own, and let the disk begin with it."""
        self._unsettled = True
        row, body = self._numbered("baskets", payload)
        self._connection.execute(_INSERT["baskets"], (row, body))
        self._log.start_writing()
        return row

    def _numbered(self, table: str, payload: bytes) -> tuple[int, bytes]:
        self._last[table] = row = self._last[table] + 1
        body, seal = sealed(table, row, payload)
        if table in _COUNTED:
            self._count += 1
            self._sum += seal
        return row, body

    def blank(self, table: str, row: int) -> None:
        """Overwrite a row by zeros, where it is."""
        self._begin()
        self._sum -= seal_of(self._body(table, row))
        self._count -= 1
        self._connection.execute(f"UPDATE {table} SET body = zeroblob(length(body)) WHERE id = ?", (row,))
        self._blanks += 1
        self._blanked = self._ledger_due = True

    def erase(self, patience: float) -> bool:
        """Remove the former bytes of blanked rows from the file and from the write-ahead log.

        False if that is not possible now; `hindrance` says why, and the next call tries again.
        """
        if not self._blanked:
            return True
        deadline = time.monotonic() + patience
        try:
            while self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() >= deadline:
                    self.hindrance = f"for {patience:g} s a reader has kept them. End that reader"
                    return False
            self._log.synchronise()  # SQLite would leave its new length in a cache
        except (sqlite3.Error, OSError) as error:  # a full disk, for one: what was committed is safe in the log
            self.hindrance = f"{error}. Check the disk and its free space"
            return False
        self._blanked = False
        self._compact()
        return True

    def _compact(self) -> None:
        """Give the room of blank rows back, if most rows are blank. If that fails, try again when there are more."""
        if self._blanks <= max(self._count, _WORTH_COMPACTING):
            return
        self._blanks = 0
        with suppress(StoreError), explained(self.path):
            self._copy_what_remains()
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _copy_what_remains(self) -> None:
        """Copy the rows that are not blank, and the last, into new tables; of the old ones, all pages are zeroed.

        Deleting rows would move others within their pages and leave copies of them there, if no VACUUM followed.
        """
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for table in _COUNTED:
                execute(f"ALTER TABLE {table} RENAME TO former")
                execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
                execute(
                    f"INSERT INTO {table} SELECT * FROM former WHERE body != zeroblob(length(body)) "
                    "OR id = (SELECT max(id) FROM former) ORDER BY id"
                )
                execute("DROP TABLE former")
            execute("COMMIT")
        except BaseException:
            self._blanked = True  # as in roll_back
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def back_up(self, target: Path) -> None:
        """Write a copy of this moment's state, which holds nothing but the rows that remain."""
        if target.exists():
            raise StoreError(f"{target} exists. Choose another name, or remove it first")
        try:
            with replacing(target) as partial, explained(target):
                self._connection.execute("VACUUM INTO ?", (str(partial),))
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror}") from error

    def _write_ledger(self) -> None:
        """Bring the ledger up to date with the newest baskets; otherwise that waits until a row is blanked."""
        if self._ledger()[0] != self._last["baskets"]:
            self._begin()
            self._ledger_due = True
            self.commit()
            self.settle()

    def close(self, emptied: Callable[[], object] = lambda: None) -> None:
        """Leave one file, without a log; `emptied` is called when nothing is in the log, just before it vanishes."""
        with explained(self.path), closing(self._log), closing(self._connection):
            if not self._read_only:
                self._write_ledger()
                patience, self._blanked = PATIENCE if self._blanked else 0, True
                if self.erase(patience):
                    emptied()

    def abandon(self) -> None:
        """Close a file without writing to it."""
        self._connection.close()
        self._log.close()


_MIGRATIONS = (
    (
        *(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)" for table in (*TABLES, "ledger")),
        f"INSERT INTO ledger VALUES (1, x'{_LEDGER.pack(0, 0, 0, 0).hex()}')",
        f"PRAGMA application_id = {_APPLICATION}",
    ),
)


def _unsealed_all(table: str, rows: list[tuple[int, bytes]], progress: Progress | None) -> dict[int, bytes]:
    payloads = {}
    for done, (row, body) in enumerate(rows, 1):
        payload = unsealed(table, row, body)
        if payload:
            payloads[row] = payload
        if progress is not None and (done % 65536 == 0 or done == len(rows)):
            progress(done, len(rows))
    return payloads


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if read_only and not path.exists():
        raise StoreError(f"{path} does not exist. Create it with `unbasket import`, or unbasket.open")
    if path.is_dir():
        raise StoreError(f"{path} is a directory. Choose a file")
    mode = "ro" if read_only else "rw"
    if read_only and not log_of(path).exists() and not os.access(path.parent, os.W_OK, effective_ids=True):
        mode += "&immutable=1"  # SQLite's shared memory has no place there, and needs none
    if not read_only and not path.exists():
        _create(path)
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )


def _create(path: Path) -> None:
    """An empty database for its owner alone. SQLite gives the files beside it the same mode."""
    try:
        create(path.resolve())  # a link may point to where it is to be
    except OSError as error:
        raise StoreError(f"cannot create {path}: {error.strerror}") from error
