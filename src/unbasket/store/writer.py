"""Writing the SQLite file: rows are appended, or zeroed in place.

Erasure rests on how SQLite treats such tables, which was measured: a body that is overwritten by as many zeros changes
in place, so no page keeps a copy, and a truncating checkpoint leaves nothing in the write-ahead log. Deleting single
rows, an index, or rows that change their size would leave fragments in unallocated parts of pages.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from unbasket.core.codec import BasketRowWriter
from unbasket.domain.results import Progress
from unbasket.errors import StoreError, UncertainError
from unbasket.files import real_path
from unbasket.store import compaction, schema
from unbasket.store.lock import descriptors, identity_of
from unbasket.store.reader import DatabaseReader, connect
from unbasket.store.row_codec import TABLES, checked_payload, checksum_of, with_checksum
from unbasket.store.row_totals import COUNTED, RowTotals, TotalsRecord
from unbasket.store.sqlite_errors import is_refusal, translated, translating
from unbasket.store.wal import Wal, wal_path

TIMEOUT = 10
"""Seconds that a forget waits for readers of old pages."""

PAUSE = 0.01
"""Seconds between its attempts."""

_WORTH_COMPACTING = 2**20  # a file with fewer zeroed bytes is left as it is
_PACE = 0.02  # seconds between two steps of a compaction, so that learns are hardly slowed
_CHUNK = 16_384  # rows that are written at a time
_LOG_SIZE = 2**21  # bytes that are logged between two checkpoints, so that the log is reused and does not grow
_NAMES_CHECKED_EVERY = 0.01  # seconds; each time would take a tenth of a learn


class Database:
    """An open file, read through its `reader`. One thread at a time may call the methods of the two.

    A durable forget is: zero the rows in place, commit, and empty the write-ahead log by a truncating checkpoint, which
    syncs both files. Then no file has the former bytes.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path = real_path(path)
        self._wal = Wal(path)
        self._read_only = read_only
        self._totals_due = False  # whether the transaction must write the row totals
        self._before: tuple[RowTotals, TotalsRecord | None] | None = None  # the transaction
        self._touched = _no_rows()
        # Whether no former bytes of zeroed rows are left in the files. A crash may have left some, and a log to sync.
        self.is_erased = self._is_synced = read_only
        self.erasures = 0  # that succeeded
        self.has_reader, self.obstacle = False, ""
        self._names_due = self._compaction_due = 0.0
        self._logged = 0  # bytes in the log since the last checkpoint, estimated
        self._size = 0  # of the file, after the last checkpoint
        self._failure = ""  # the error that ended writing
        self._newly_zeroed = 0  # bytes, since the last decision whether to compact
        with translating(path):
            self._connection = connect(path, read_only)
            self._identity = identity_of(path)
            descriptors.connected(self._identity)
            self._is_connected = True
            try:
                schema.prepare(self._connection, path, read_only=read_only)
                self.reader = DatabaseReader(path, self._connection)
                self._note_checkpoint()
            except BaseException:
                self.abandon()
                raise
        # A compaction of these may have been under way when the file was closed.
        self._to_compact = [table for table in schema.COMPACTED if self.reader.spaces[table].copied_upto]

    # Errors of the disk -----------------------------------------------------------------------------------------

    @property
    def has_failed(self) -> bool:
        """Whether an error of the disk has ended writing: its state is unknown until the file is opened again."""
        return self._failure != ""

    def failure(self, error: sqlite3.Error | OSError) -> StoreError:
        """Return the error of a write as one of ours. It ends writing, unless the disk merely refused the write."""
        if isinstance(error, sqlite3.Error) and is_refusal(error):
            return translated(self.path, error)
        return self._end_writing(
            f"{self.path}: the disk did not confirm what was written ({error}): it may be there after a restart, "
            "or not. Nothing more is written. Check the disk, open the database again, and look"
        )

    def _raise_unless_refused(self, error: sqlite3.Error | OSError) -> None:
        failure = self.failure(error)
        if self.has_failed:
            raise failure from error

    def _end_writing(self, failure: str) -> UncertainError:
        self._failure = failure
        return UncertainError(failure)

    def _check_log(self) -> None:
        if self._wal.is_cut():
            raise self._cut(wal_path(self.path))

    def _prepare_log(self) -> None:
        """Prepare the log for a transaction."""
        self._check_log()
        self._wal.reserve()

    def _check_size(self) -> None:
        size = self._file_size()
        if size is not None and size < self._size:
            raise self._cut(self.path)

    def _cut(self, file: Path) -> UncertainError:
        return self._end_writing(
            f"{file} was cut off by another program while it was open: rows that were acknowledged are lost. Nothing "
            "more is written. Restore a backup, or open the database again and look"
        )

    def _file_size(self) -> int | None:
        """Return the size of the file; None if the path does not lead to it any more."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_size if (found.st_dev, found.st_ino) == self._identity else None

    # Transactions -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start a transaction, unless one is open: all that is written until `commit` will be there, or nothing."""
        if not self._connection.in_transaction:
            self._prepare_log()
            self._before = self.reader.totals.copy(), self.reader.record
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit the transaction, if one is open; it is on disk after `sync` or `try_to_erase`."""
        if not self._connection.in_transaction:
            return
        self._is_synced = False
        self._logged += schema.PAGE
        record = self.reader.totals.record() if self._totals_due else None
        try:
            if record is not None:
                self._connection.execute("UPDATE row_totals SET body = ?", (record.to_bytes(),))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.failure(error) from error
        if record is not None:
            self.reader.record = record
            self._logged += schema.PAGE
        self._totals_due = False
        self._before, self._touched = None, _no_rows()

    def sync(self) -> None:
        """Wait until all that was committed is on disk."""
        if self._is_synced:
            return
        try:
            self._wal.sync()
        except OSError as error:
            raise self.failure(error) from error
        self._is_synced = True
        if self._logged >= _LOG_SIZE:
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Copy from the log to the file what readers do not hold back. SQLite itself would ignore errors of that."""
        self._check_size()
        self._size = 0  # until it is known: a checkpoint may shorten the file, and be interrupted
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            self._raise_unless_refused(error)
        self._note_checkpoint()

    def _note_checkpoint(self) -> None:
        self._logged = 0
        self._size = self._file_size() or 0

    def check_names(self) -> None:
        """Check now and then that the path still leads to the file that is being written, whole, and to its log."""
        now = time.monotonic()
        if now < self._names_due:
            return
        self._names_due = now + _NAMES_CHECKED_EVERY
        self._check_size()
        if self.is_in_place and not self._wal.is_removed():
            return
        raise self.moved()

    @property
    def is_in_place(self) -> bool:
        """Whether the path still leads to the file."""
        return self._file_size() is not None

    def moved(self) -> UncertainError:
        """Return the error for a path that does not lead to the file any more."""
        return UncertainError(
            f"{self.path}, or its log, was moved, replaced or removed while it was open: a program that opens it now "
            "does not find what was written last. Nothing more is written. Put the file back if it was moved, close "
            "this program, which writes its log to the file, and open it again"
        )

    def roll_back(self) -> dict[str, list[int]]:
        """End a transaction that failed, and restore the totals to those on disk.

        Returns the rows of each table that it touched: those that it was to zero, and new ones; of new baskets, only
        those that are there nevertheless, since an interrupt came after the commit.
        """
        with translating(self.path):
            if self._connection.in_transaction:
                self.is_erased = False  # a large transaction has written to the log already, where it would stay
                self._connection.execute("ROLLBACK")
            if self._before is not None:
                self._restore_totals(*self._before)
                self._before = None
            first = self.reader.next_row("baskets")  # an interrupt may have come after `append_committed`
            for row, body in self._connection.execute(*self.reader.spaces["baskets"].select(first, 2**62)).fetchall():
                self.reader.totals.add_appended("baskets", 1, checksum_of(body), len(body))
                self._touched["baskets"].append(row)
        self._totals_due = False
        touched, self._touched = self._touched, _no_rows()
        return touched

    def _restore_totals(self, before: RowTotals, record: TotalsRecord | None) -> None:
        """Restore the totals from before a transaction, unless it was committed and interrupted after that."""
        reader = self.reader
        last, now = reader.totals.last.copy(), reader.read_record()
        reader.find_spaces()
        if (reader.totals.last, now) == (before.last, record):
            reader.totals = before
        else:
            self._touched["baskets"] += range(before.last["baskets"] + 1, last["baskets"] + 1)
            reader.totals.last, reader.totals.cursors, reader.record = last, now.cursors, now

    # Rows -------------------------------------------------------------------------------------------------------

    def append(self, table: str, payload: bytes) -> int:
        """Append a row and return its number."""
        self._begin()
        row = self._insert(table, payload)
        if table != "baskets":
            self._totals_due = True
            self._touched[table].append(row)
        return row

    def append_committed(self, payload: bytes) -> int:
        """Append a basket, commit, let the disk start writing, and return the row number.

        A transaction is open if there are cursors to commit. Otherwise the row is one of its own.
        """
        if not self._connection.in_transaction:
            self._prepare_log()
            self._is_synced = False
            self._logged += schema.PAGE
        row = self._insert("baskets", payload)
        self.commit()
        try:
            self._wal.start_writing()
        except OSError as error:
            raise self.failure(error) from error
        return row

    def _insert(self, table: str, payload: bytes) -> int:
        row = self.reader.next_row(table)
        body, checksum = with_checksum(table, row, payload, self.reader.row_key)
        self._connection.execute(self._insertion(table), (row, body))
        self.reader.totals.add_appended(table, 1, checksum, len(body))
        self._logged += len(body)
        return row

    def _insertion(self, table: str) -> str:
        return f"INSERT INTO {self.reader.spaces[table].from_space} VALUES (?, ?)"

    def append_baskets(self, writer: BasketRowWriter, total: int, progress: Progress | None) -> range:
        """Append the rows of `total` baskets and return their numbers."""
        self._begin()
        first = self.reader.next_row("baskets")
        checksums = size = 0
        while rows := writer.take(self.reader.next_row("baskets"), _CHUNK):
            self._connection.executemany(self._insertion("baskets"), rows)
            self.reader.totals.add_appended("baskets", len(rows), writer.checksums - checksums, writer.size - size)
            checksums, size = writer.checksums, writer.size
            if progress is not None:
                progress(self.reader.next_row("baskets") - first, total)
        self._logged += size
        return range(first, self.reader.next_row("baskets"))

    def zero(self, table: str, *rows: int) -> None:
        """Overwrite rows by zeros, in place."""
        if not rows:
            return
        self._touched[table] += rows
        self._begin()
        for row in rows:
            body = self.reader.body(table, row)
            space = self.reader.spaces[table].of(row)
            self._connection.execute(f"UPDATE {space} SET body = zeroblob(length(body)) WHERE id = ?", (row,))
            self.reader.totals.remove_zeroed(checksum_of(body), len(body))
            self._newly_zeroed += len(body)
            self._logged += schema.PAGE
            self.is_erased = False
            self._totals_due = True

    def put_cursors(self, payload: bytes) -> None:
        """Replace the cursors, in the transaction of the rows that they count."""
        self._begin()
        self.reader.put_cursors(payload)
        self._totals_due = True

    def reseal(self, key: bytes) -> None:
        """Seal all rows with another key, in place; the caller commits."""
        self._begin()
        cursors = self.reader.cursors()
        self.reader.row_key = None
        for table in TABLES:
            for first in range(1, self.reader.next_row(table), _CHUNK):
                for row, body in self.reader.bodies(table, first, _CHUNK):
                    payload = checked_payload(table, row, body)
                    if payload and row < first + _CHUNK:
                        self._reseal(table, row, payload, key, checksum_of(body))
        self.reader.row_key, self._totals_due = key, True
        if cursors:
            self.put_cursors(cursors)

    def _reseal(self, table: str, row: int, payload: bytes, key: bytes, before: int) -> None:
        body, checksum = with_checksum(table, row, payload, key)
        self._connection.execute(f"UPDATE {self.reader.spaces[table].of(row)} SET body = ? WHERE id = ?", (body, row))
        if table in COUNTED:
            self.reader.totals.checksums += checksum - before

    # Erasure ----------------------------------------------------------------------------------------------------

    def erase(self, timeout: float) -> bool:
        """Try to erase until no reader is in the way; return whether it succeeded. `obstacle` says why it did not."""
        deadline = time.monotonic() + timeout
        while not self.try_to_erase():
            if not self.has_reader or time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE)
        return True

    def try_to_erase(self) -> bool:
        """Remove the former bytes of zeroed rows from both files, without waiting; return whether it succeeded.

        If so, all that was committed is on disk. If not, the next call tries again; with `has_reader`, it may succeed
        when that reader has ended.
        """
        if self.has_failed:
            raise UncertainError(self._failure)
        if self.is_erased:
            return True
        self._check_log()
        self._check_size()
        self.has_reader = False
        try:
            self.has_reader = self._truncate_wal()
            self._note_checkpoint()
            if self.has_reader:
                self.obstacle = "a reader keeps them. End that reader"
                return False
            self._wal.sync()  # SQLite would leave its new length in a cache
        except (sqlite3.Error, OSError) as error:
            self._raise_unless_refused(error)  # what was committed is safe in the log
            self.obstacle = f"{error}. Check the disk and its free space"
            return False
        self.is_erased = self._is_synced = True  # SQLite has synced the log, and then the file
        self.erasures += 1
        return True

    def _truncate_wal(self) -> bool:
        """Checkpoint the write-ahead log and truncate it, without waiting; return whether a reader forbids it."""
        self._size = 0
        self._wal.expect_truncation()
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            return bool(self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {schema.BUSY_TIMEOUT}")

    # Compaction -------------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Copy a batch of rows if most bytes are zeroed, or if a compaction is under way.

        A batch has a fixed size, or twice the bytes that were zeroed just now, so no file grows without end.
        """
        newly_zeroed, self._newly_zeroed = self._newly_zeroed, 0
        if not self.is_erased:  # a reader is in the way, and would let the log grow
            return
        totals = self.reader.totals
        if not self._to_compact:
            if totals.zeroed <= max(totals.size, _WORTH_COMPACTING):
                return
            self._to_compact = [table for table in schema.COMPACTED if totals.last[table]]
        if not newly_zeroed and time.monotonic() < self._compaction_due:
            return
        try:
            self._copy_batch(self._to_compact[0], max(compaction.BATCH_SIZE, 2 * newly_zeroed))
            self._compaction_due = time.monotonic() + _PACE
        except sqlite3.Error as error:
            self._raise_unless_refused(error)
            self._to_compact.clear()
            totals.zeroed = 0  # the next attempt is when more is zeroed

    def _copy_batch(self, table: str, size: int) -> None:
        execute = self._connection.execute
        self._check_log()
        execute("BEGIN IMMEDIATE")
        try:
            batch = compaction.copy_batch(self._connection, self.reader.spaces[table], size)
            execute("COMMIT")
        except BaseException:
            self.is_erased = False  # as in roll_back
            if self._connection.in_transaction:
                execute("ROLLBACK")
            self.reader.spaces[table], _ = compaction.Spaces.find(self._connection, table)
            raise
        self._is_synced = False
        self._logged += size
        self.reader.spaces[table] = batch.spaces
        self.reader.totals.zeroed -= batch.freed
        if batch.is_last:
            self._to_compact.remove(table)

    # Closing ----------------------------------------------------------------------------------------------------

    def _write_totals(self) -> None:
        """Bring the totals on disk up to date with the newest baskets; otherwise that waits until a row is zeroed."""
        if self.reader.read_record().upto != self.reader.totals.last["baskets"]:
            self._begin()
            self._totals_due = True
            self.commit()
            self.sync()

    def close(self, on_empty_wal: Callable[[], object] = lambda: None) -> None:
        """Leave one file without a log; `on_empty_wal` is called when the log is empty, just before it is removed.

        After an error that ended writing, the log stays as it is.
        """
        with translating(self.path), closing(self._wal), ExitStack() as stack:
            stack.callback(self._disconnect)
            if not (self._read_only or self.has_failed):
                self._write_totals()
                timeout, self.is_erased = 0 if self.is_erased else TIMEOUT, False
                if self.erase(timeout):
                    on_empty_wal()

    def abandon(self) -> None:
        """Close the file without writing to it."""
        with closing(self._wal):
            self._disconnect()

    def _disconnect(self) -> None:
        with ExitStack() as stack:
            if self.has_failed and self._file_size():  # SQLite merges the log when the last connection closes
                with suppress(StoreError, sqlite3.Error):
                    reader = stack.enter_context(closing(connect(self.path, read_only=True)))
                    reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            self._connection.close()
        was_connected, self._is_connected = self._is_connected, False
        if was_connected:
            descriptors.disconnected(self._identity)


def _no_rows() -> dict[str, list[int]]:
    return {table: [] for table in TABLES}
