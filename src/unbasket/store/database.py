"""The SQLite file: tables of sealed rows that are appended or blanked.

Erasure rests on what SQLite does with such tables, and was measured: a body that is overwritten by as many zeros
changes in place, so that no page keeps a copy, and a truncating checkpoint leaves nothing in the write-ahead log.
Deleting rows beside others, an index, or rows that change their size would leave fragments in unallocated parts of
pages.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from unbasket.core import BasketPacker, Unpacker
from unbasket.errors import StoreCorruptError, StoreError, UncertainError
from unbasket.exchange.progress import Progress
from unbasket.files import create, real_path
from unbasket.store import compaction, schema
from unbasket.store.faults import explained, explanation
from unbasket.store.ledger import COUNTED, Entry, Ledger
from unbasket.store.loading import BasketReader
from unbasket.store.lock import descriptors, identity_of
from unbasket.store.log import Log, log_of
from unbasket.store.rows import TABLES, seal_of, sealed, unsealed
from unbasket.store.sides import SIDED, Sides

PATIENCE = 10
"""Seconds that a forget waits for readers of old pages."""

PAUSE = 0.01
"""Seconds between its attempts."""

_WORTH_COMPACTING = 2**20  # a file with fewer blank bytes is left as it is
_PACE = 0.02  # seconds between two pieces of a compaction beside learning, which it takes a small part of
_CHUNK = 16_384  # rows that are read, or written, at a time
_NAMES_CHECKED_EVERY = 0.01  # seconds; it would take a tenth of a learn


class Loaded(NamedTuple):
    """What a database holds: the baskets, and by table and row what the others hold."""

    baskets: BasketReader
    others: dict[str, dict[int, bytes]]


class Database:
    """An open file. One thread at a time may call its methods."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path = real_path(path)
        self._log = Log(path)
        self._read_only = read_only
        self._ledger = Ledger()
        self._entry: Entry | None = None  # of the ledger, that is on disk
        self._entry_due = False
        self._before: tuple[Ledger, Entry | None] | None = None  # a transaction
        self._touched = _nothing()
        self._blanked = self._unsynced = not read_only  # a crash may have left something to erase, or to sync
        self.erasures = 0  # that succeeded
        self.has_reader, self.hindrance = False, ""
        self._names_due = self._compaction_due = 0.0
        self._sides: dict[str, Sides] = {}
        self._to_compact: list[str] = []
        self._newly_blank = 0  # bytes, since the last look at whether to compact
        with explained(path):
            self._connection = _connect(path, read_only)
            self._identity = identity_of(path)
            descriptors.connected(self._identity)
            try:
                schema.prepare(self._connection, path, read_only=read_only)
                self._find_last()
            except BaseException:
                self.abandon()
                raise

    # Reading ----------------------------------------------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written."""
        return self._ledger.last["settings"] == 0

    @property
    def rows(self) -> int:
        """How many rows were ever written: whoever has lost some has fewer."""
        return sum(self._ledger.last.values())

    def payload(self, table: str, row: int) -> bytes:
        """What a row holds; an error if there is no such row."""
        return unsealed(table, row, self._body(table, row))

    def last_payload(self, table: str) -> bytes | None:
        """What the newest row of a table holds."""
        last = self._ledger.last[table]
        return self.payload(table, last) if last else None

    def payloads(self, table: str, first: int = 1, last: int = 2**62) -> Iterator[tuple[int, bytes]]:
        """The rows of a table that were not erased, with their numbers: all, or those from `first` to `last`."""
        with explained(self.path):
            for row, body in self._connection.execute(*self._sides[table].select(first, last)):
                payload = unsealed(table, row, body)
                if payload:
                    yield row, payload

    def found(self, table: str, rows: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Those of these rows that are there and were not erased."""
        for row in rows:
            yield from self.payloads(table, row, row)

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Meanwhile, all that is read is of one moment. An erasure waits for its end. What was counted is forgotten."""
        with explained(self.path):
            self._connection.execute("BEGIN")
            try:
                self._ledger = Ledger()
                self._find_last()
                yield
            finally:
                self._connection.execute("ROLLBACK")

    def bodies(self, table: str, first: int, count: int) -> list[tuple[int, bytes]]:
        """So many rows of a table, blank ones included, from a number on."""
        query, values = self._sides[table].select(first, self._ledger.last[table])
        return self._connection.execute(f"{query} LIMIT ?", (*values, count)).fetchall()

    def count_held(self, table: str, first: int, last: int) -> int:
        """How many rows of these numbers are not blank."""
        query, values = self._sides[table].select(first, last)
        counting = f"SELECT count(*) FROM ({query}) WHERE body != zeroblob(length(body))"
        count: int = self._connection.execute(counting, values).fetchone()[0]
        return count

    def held(self, table: str, first: int, last: int) -> set[int]:
        """The rows of these numbers that are not blank."""
        return {row for row, body in self._connection.execute(*self._sides[table].select(first, last)) if any(body)}

    def load(self, progress: Progress | None) -> Loaded:
        """The rows of all tables but the receipts: of one moment, and none of them lost."""
        with self._checking_pages(), self.moment():
            entry = self.read_entry()
            others = {table: self._table(table) for table in COUNTED if table != "baskets"}
            loaded = Loaded(self._baskets(entry.upto, progress), others)
            self._check_receipts()
        self._entry = entry
        self._check(entry, loaded.baskets.unpacker)
        self._to_compact = [table for table in SIDED if self._sides[table].carried]  # somebody has begun with these
        return loaded

    @contextmanager
    def _checking_pages(self) -> Iterator[None]:
        """Have SQLite check its pages meanwhile, over a connection of its own; an error if they are damaged."""
        with explained(self.path), ThreadPoolExecutor(1) as beside:
            checking = beside.submit(_verdict, self.path)
            yield
            if checking.result() != "ok":
                raise StoreCorruptError(f"{self.path} is damaged ({checking.result()}). Restore a backup")

    def _table(self, table: str) -> dict[int, bytes]:
        """What the rows of a table hold, by their numbers."""
        payloads = {}
        for row, body in self._connection.execute(*self._sides[table].select(1, self._ledger.last[table])):
            payload = unsealed(table, row, body)
            if payload:
                payloads[row] = payload
                self._ledger.count_in(1, seal_of(body), len(body), 0)
            else:
                self._ledger.count_in(0, 0, 0, len(body))
        return payloads

    def _baskets(self, upto: int, progress: Progress | None) -> BasketReader:
        """The rows of baskets, unpacked while the next ones are read."""
        reader, last = BasketReader(upto), self._ledger.last["baskets"]
        cursor = self._connection.execute(*self._sides["baskets"].select(1, last))
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(cursor.fetchmany, _CHUNK)
            while rows := coming.result():
                coming = ahead.submit(cursor.fetchmany, _CHUNK)
                reader.read(rows)
                if progress is not None:
                    progress(rows[-1][0], last)
        found = reader.unpacker
        self._ledger.count_in(found.count, found.seals, found.size, found.blank)
        return reader

    def _check_receipts(self) -> None:
        """Check the seal of each receipt, and that each is there."""
        expected = 1
        for row, body in self._connection.execute("SELECT * FROM receipts ORDER BY id"):
            if row != expected or not unsealed("receipts", row, body):
                raise StoreCorruptError(f"{self.path} is damaged: receipt {expected} is missing. Restore a backup")
            expected += 1

    def _check(self, entry: Entry, baskets: Unpacker) -> None:
        """Compare what was read with the ledger: which rows there were when it was written, and all since."""
        ledger = self._ledger
        expected = entry.rows + baskets.count_since, entry.seals + baskets.seals_since, entry.receipts
        found = ledger.count, ledger.seals, ledger.last["receipts"]
        since = ledger.last["baskets"] - entry.upto
        if found != expected or baskets.count_since != since:  # the ledger is written with every row that is erased
            raise StoreCorruptError(
                f"{self.path} is damaged: it has {ledger.count} rows and {ledger.last['receipts']} receipts where "
                f"{expected[0]} and {entry.receipts} should be, or their checksums differ. Restore a backup"
            )

    def _find_last(self) -> None:
        for table in TABLES:
            self._sides[table], self._ledger.last[table] = Sides.found(self._connection, table)

    def read_entry(self) -> Entry:
        """What the ledger on disk says."""
        row = self._connection.execute("SELECT body FROM ledger").fetchone()
        entry = None if row is None else Entry.from_bytes(row[0])
        if entry is None:
            raise StoreCorruptError(f"{self.path} is damaged: its ledger is missing. Restore a backup")
        return entry

    def _body(self, table: str, row: int) -> bytes:
        side = self._sides[table].of(row)
        found = self._connection.execute(f"SELECT body FROM {side} WHERE id = ?", (row,)).fetchone()
        if found is None:
            raise StoreCorruptError(f"{self.path} is damaged: row {row} of {table} is missing. Restore a backup")
        body: bytes = found[0]
        return body

    # Writing ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start a transaction with its first write: of what is written until `commit`, all will be there or nothing."""
        if not self._connection.in_transaction:
            self._before = self._ledger.copy(), self._entry
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the transaction, if there is one: what was written is there, and on disk after `sync`."""
        if not self._connection.in_transaction:
            return
        self._unsynced = True
        try:
            entry = self._ledger.entry()
            if self._entry_due:
                self._connection.execute("UPDATE ledger SET body = ?", (entry.to_bytes(),))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explanation(self.path, error) from error
        if self._entry_due:
            self._entry = entry
        self._entry_due = False
        self._before, self._touched = None, _nothing()

    def sync(self) -> None:
        """Return when all that was committed is on disk."""
        if not self._unsynced:
            return
        try:
            self._log.synchronise()
        except OSError as error:
            raise UncertainError(
                f"{self.path}: the disk did not confirm what was written ({error}): it may be there after a restart, "
                "or not. Nothing more is written. Check the disk, open the database again, and look"
            ) from error
        self._unsynced = False

    def check_names(self) -> None:
        """Check now and then that whoever opens the path finds the file that is being written to, and its log."""
        now = time.monotonic()
        if now < self._names_due:
            return
        self._names_due = now + _NAMES_CHECKED_EVERY
        try:
            if identity_of(self.path) == self._identity and not self._log.is_removed():
                return
        except OSError:
            pass  # there is no such file any more
        raise UncertainError(
            f"{self.path}, or its log, was moved, replaced or removed while it was open: whoever opens it now does not "
            "find what was written last. Nothing more is written. Put the file back if it was moved, close this "
            "program, which writes its log to the file, and open it again"
        )

    def roll_back(self) -> dict[str, list[int]]:
        """End a transaction that went wrong, if it is not over yet, and know again what is on disk.

        Returns the rows of each table that it touched: those that it was to blank, and new ones; of new baskets, only
        those that are there nevertheless.
        """
        with explained(self.path):
            if self._connection.in_transaction:
                self._blanked = True  # a large transaction has written to the log already, where it would stay
                self._connection.execute("ROLLBACK")
            if self._before is not None:
                self._undo(*self._before)
                self._before = None
            first = self.next_row("baskets")  # one may be committed that was interrupted
            for row, body in self._connection.execute(*self._sides["baskets"].select(first, 2**62)).fetchall():
                self._ledger.add("baskets", 1, seal_of(body), len(body))
                self._touched["baskets"].append(row)
        self._entry_due = False
        touched, self._touched = self._touched, _nothing()
        return touched

    def _undo(self, before: Ledger, entry: Entry | None) -> None:
        """Know again what was there before a transaction, unless that was committed, and then interrupted."""
        last, now = self._ledger.last.copy(), self.read_entry()
        self._find_last()
        if (self._ledger.last, now) == (before.last, entry):
            self._ledger = before
        else:
            self._touched["baskets"] += range(before.last["baskets"] + 1, last["baskets"] + 1)
            self._ledger.last, self._entry = last, now

    def next_row(self, table: str) -> int:
        """The number that the next row of a table will have."""
        return self._ledger.last[table] + 1

    def append(self, table: str, payload: bytes) -> int:
        """Add a row and return its number."""
        self._begin()
        row = self._insert(table, payload)
        if table != "baskets":
            self._entry_due = True
            self._touched[table].append(row)
        return row

    def append_alone(self, payload: bytes) -> int:
        """Add a row of a basket in a transaction of its own, and let the disk begin with it."""
        self._unsynced = True
        row = self._insert("baskets", payload)
        self._log.start_writing()
        return row

    def _insert(self, table: str, payload: bytes) -> int:
        row = self._ledger.last[table] + 1
        body, seal = sealed(table, row, payload)
        self._connection.execute(self._insertion(table), (row, body))
        self._ledger.add(table, 1, seal, len(body))
        return row

    def _insertion(self, table: str) -> str:
        return f"INSERT INTO {self._sides[table].front} VALUES (?, ?)"

    def append_baskets(self, packer: BasketPacker, total: int, progress: Progress | None) -> range:
        """Add rows of so many baskets and return their numbers."""
        self._begin()
        first = self.next_row("baskets")
        seals = size = 0
        while rows := packer.take(self.next_row("baskets"), _CHUNK):
            self._connection.executemany(self._insertion("baskets"), rows)
            self._ledger.add("baskets", len(rows), packer.seals - seals, packer.size - size)
            seals, size = packer.seals, packer.size
            if progress is not None:
                progress(self.next_row("baskets") - first, total)
        return range(first, self.next_row("baskets"))

    def blank(self, table: str, *rows: int) -> None:
        """Overwrite rows by zeros, where they are."""
        if not rows:
            return
        self._touched[table] += rows
        self._begin()
        for row in rows:
            body = self._body(table, row)
            side = self._sides[table].of(row)
            self._connection.execute(f"UPDATE {side} SET body = zeroblob(length(body)) WHERE id = ?", (row,))
            self._ledger.take_out(seal_of(body), len(body))
            self._newly_blank += len(body)
            self._blanked = self._entry_due = True

    def erase(self, patience: float) -> bool:
        """Remove the former bytes of blanked rows from the file and from the write-ahead log, as soon as readers allow.

        False if that is not possible; `hindrance` says why, and the next call tries again.
        """
        deadline = time.monotonic() + patience
        while not self.try_to_erase():
            if not self.has_reader or time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE)
        return True

    def try_to_erase(self) -> bool:
        """`erase`, now or not at all; with a reader in the way (`has_reader`), it may be possible later."""
        if not self._blanked:
            return True
        self.has_reader = False
        try:
            self.has_reader = self._empty_log()
            if self.has_reader:
                self.hindrance = "a reader keeps them. End that reader"
                return False
            self._log.synchronise()  # SQLite would leave its new length in a cache
        except (sqlite3.Error, OSError) as error:  # a full disk, for one: what was committed is safe in the log
            self.hindrance = f"{error}. Check the disk and its free space"
            return False
        self._blanked = self._unsynced = False  # SQLite has synced the log, and then the file
        self.erasures += 1
        return True

    def _empty_log(self) -> bool:
        """Bring all of the log into the file and empty it, without waiting; returns whether a reader forbids it."""
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            return bool(self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {schema.BUSY_TIMEOUT}")

    def compact(self) -> None:
        """Do a piece of a compaction if most bytes are blank, or if one is under way.

        A piece has a fixed size, or twice that of what was blanked just now, so that no file grows without end.
        """
        newly_blank, self._newly_blank = self._newly_blank, 0
        if self._blanked:  # a reader is in the way, and would let the log grow
            return
        if not self._to_compact:
            if self._ledger.blank <= max(self._ledger.size, _WORTH_COMPACTING):
                return
            self._to_compact = [table for table in SIDED if self._ledger.last[table]]
        if not newly_blank and time.monotonic() < self._compaction_due:
            return
        try:
            self._carry(self._to_compact[0], max(compaction.PIECE, 2 * newly_blank))
            self._compaction_due = time.monotonic() + _PACE
        except sqlite3.Error:  # a full disk, for one: nothing has happened
            self._to_compact.clear()
            self._ledger.blank = 0  # there is a next attempt when there is more

    def _carry(self, table: str, size: int) -> None:
        """Carry over some rows of a table to its other side."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            piece = compaction.carry(self._connection, self._sides[table], size)
            execute("COMMIT")
        except BaseException:
            self._blanked = True  # as in roll_back
            if self._connection.in_transaction:
                execute("ROLLBACK")
            self._sides[table], _ = Sides.found(self._connection, table)
            raise
        self._unsynced = True
        self._sides[table] = piece.sides
        self._ledger.blank -= piece.freed
        if piece.is_last:
            self._to_compact.remove(table)

    def _write_ledger(self) -> None:
        """Bring the ledger up to date with the newest baskets; otherwise that waits until a row is blanked."""
        if self.read_entry().upto != self._ledger.last["baskets"]:
            self._begin()
            self._entry_due = True
            self.commit()
            self.sync()

    def close(self, emptied: Callable[[], object] = lambda: None) -> None:
        """Leave one file, without a log; `emptied` is called when nothing is in the log, just before it vanishes."""
        with explained(self.path), closing(self._log), ExitStack() as stack:
            stack.callback(self._disconnect)
            if not self._read_only:
                self._write_ledger()
                patience, self._blanked = PATIENCE if self._blanked else 0, True
                if self.erase(patience):
                    emptied()

    def abandon(self) -> None:
        """Close a file without writing to it."""
        with closing(self._log):
            self._disconnect()

    def _disconnect(self) -> None:
        self._connection.close()
        descriptors.disconnected(self._identity)


def _verdict(path: Path) -> str:
    """What SQLite says of the pages of a file: "ok", or what is wrong."""
    with closing(_connect(path, read_only=True)) as connection:
        found: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return found[0][0]


def _nothing() -> dict[str, list[int]]:
    return {table: [] for table in TABLES}


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if read_only and not path.exists():
        raise StoreError(f"{path} does not exist. Create it with `unbasket import`", "In Python: unbasket.open")
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
