"""The SQLite file, as it is written: sealed rows are appended or blanked.

Erasure rests on what SQLite does with such tables, and was measured: a body that is overwritten by as many zeros
changes in place, so that no page keeps a copy, and a truncating checkpoint leaves nothing in the write-ahead log.
Deleting rows beside others, an index, or rows that change their size would leave fragments in unallocated parts of
pages.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from unbasket.core import BasketRowWriter
from unbasket.domain.progress import Progress
from unbasket.errors import UncertainError
from unbasket.files import real_path
from unbasket.store import compaction, schema
from unbasket.store.lock import descriptors, identity_of
from unbasket.store.reader import Tables, connect
from unbasket.store.row_codec import TABLES, seal_of, sealed
from unbasket.store.row_totals import Entry, Ledger
from unbasket.store.sides import SIDED, Sides
from unbasket.store.sqlite_errors import explained, explanation
from unbasket.store.wal import Log

PATIENCE = 10
"""Seconds that a forget waits for readers of old pages."""

PAUSE = 0.01
"""Seconds between its attempts."""

_WORTH_COMPACTING = 2**20  # a file with fewer blank bytes is left as it is
_PACE = 0.02  # seconds between two pieces of a compaction beside learning, which it takes a small part of
_CHUNK = 16_384  # rows that are written at a time
_NAMES_CHECKED_EVERY = 0.01  # seconds; it would take a tenth of a learn


class Database:
    """An open file, and the `tables` in it. One thread at a time may call its methods, and theirs."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path = real_path(path)
        self._log = Log(path)
        self._read_only = read_only
        self._entry_due = False
        self._before: tuple[Ledger, Entry | None] | None = None  # a transaction
        self._touched = _nothing()
        self._blanked = self._unsynced = not read_only  # a crash may have left something to erase, or to sync
        self.erasures = 0  # that succeeded
        self.has_reader, self.hindrance = False, ""
        self._names_due = self._compaction_due = 0.0
        self._newly_blank = 0  # bytes, since the last look at whether to compact
        with explained(path):
            self._connection = connect(path, read_only)
            self._identity = identity_of(path)
            descriptors.connected(self._identity)
            try:
                schema.prepare(self._connection, path, read_only=read_only)
                self.tables = Tables(path, self._connection)
            except BaseException:
                self.abandon()
                raise
        # Somebody may have begun with these.
        self._to_compact = [table for table in SIDED if self.tables.sides[table].carried]

    def _begin(self) -> None:
        """Start a transaction with its first write: of what is written until `commit`, all will be there or nothing."""
        if not self._connection.in_transaction:
            self._before = self.tables.ledger.copy(), self.tables.entry
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the transaction, if there is one: what was written is there, and on disk after `sync`."""
        if not self._connection.in_transaction:
            return
        self._unsynced = True
        try:
            entry = self.tables.ledger.entry()
            if self._entry_due:
                self._connection.execute("UPDATE ledger SET body = ?", (entry.to_bytes(),))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explanation(self.path, error) from error
        if self._entry_due:
            self.tables.entry = entry
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
            first = self.tables.next_row("baskets")  # one may be committed that was interrupted
            for row, body in self._connection.execute(*self.tables.sides["baskets"].select(first, 2**62)).fetchall():
                self.tables.ledger.add("baskets", 1, seal_of(body), len(body))
                self._touched["baskets"].append(row)
        self._entry_due = False
        touched, self._touched = self._touched, _nothing()
        return touched

    def _undo(self, before: Ledger, entry: Entry | None) -> None:
        """Know again what was there before a transaction, unless that was committed, and then interrupted."""
        last, now = self.tables.ledger.last.copy(), self.tables.read_entry()
        self.tables.find_last()
        if (self.tables.ledger.last, now) == (before.last, entry):
            self.tables.ledger = before
        else:
            self._touched["baskets"] += range(before.last["baskets"] + 1, last["baskets"] + 1)
            self.tables.ledger.last, self.tables.entry = last, now

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
        row = self.tables.ledger.last[table] + 1
        body, seal = sealed(table, row, payload)
        self._connection.execute(self._insertion(table), (row, body))
        self.tables.ledger.add(table, 1, seal, len(body))
        return row

    def _insertion(self, table: str) -> str:
        return f"INSERT INTO {self.tables.sides[table].front} VALUES (?, ?)"

    def append_baskets(self, packer: BasketRowWriter, total: int, progress: Progress | None) -> range:
        """Add rows of so many baskets and return their numbers."""
        self._begin()
        first = self.tables.next_row("baskets")
        seals = size = 0
        while rows := packer.take(self.tables.next_row("baskets"), _CHUNK):
            self._connection.executemany(self._insertion("baskets"), rows)
            self.tables.ledger.add("baskets", len(rows), packer.checksums - seals, packer.size - size)
            seals, size = packer.checksums, packer.size
            if progress is not None:
                progress(self.tables.next_row("baskets") - first, total)
        return range(first, self.tables.next_row("baskets"))

    def blank(self, table: str, *rows: int) -> None:
        """Overwrite rows by zeros, where they are."""
        if not rows:
            return
        self._touched[table] += rows
        self._begin()
        for row in rows:
            body = self.tables.body(table, row)
            side = self.tables.sides[table].of(row)
            self._connection.execute(f"UPDATE {side} SET body = zeroblob(length(body)) WHERE id = ?", (row,))
            self.tables.ledger.take_out(seal_of(body), len(body))
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
            if self.tables.ledger.blank <= max(self.tables.ledger.size, _WORTH_COMPACTING):
                return
            self._to_compact = [table for table in SIDED if self.tables.ledger.last[table]]
        if not newly_blank and time.monotonic() < self._compaction_due:
            return
        try:
            self._carry(self._to_compact[0], max(compaction.PIECE, 2 * newly_blank))
            self._compaction_due = time.monotonic() + _PACE
        except sqlite3.Error:  # a full disk, for one: nothing has happened
            self._to_compact.clear()
            self.tables.ledger.blank = 0  # there is a next attempt when there is more

    def _carry(self, table: str, size: int) -> None:
        """Carry over some rows of a table to its other side."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            piece = compaction.carry(self._connection, self.tables.sides[table], size)
            execute("COMMIT")
        except BaseException:
            self._blanked = True  # as in roll_back
            if self._connection.in_transaction:
                execute("ROLLBACK")
            self.tables.sides[table], _ = Sides.found(self._connection, table)
            raise
        self._unsynced = True
        self.tables.sides[table] = piece.sides
        self.tables.ledger.blank -= piece.freed
        if piece.is_last:
            self._to_compact.remove(table)

    def _write_ledger(self) -> None:
        """Bring the ledger up to date with the newest baskets; otherwise that waits until a row is blanked."""
        if self.tables.read_entry().upto != self.tables.ledger.last["baskets"]:
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


def _nothing() -> dict[str, list[int]]:
    return {table: [] for table in TABLES}
