"""Backup: a copy of one state of a database, made while other threads and processes learn and forget.

Rows are copied in chunks, each in a read transaction of its own, so no erasure waits longer than a chunk. Rows are only
appended or zeroed. So when all are copied, the row totals tell whether some were zeroed meanwhile; these are looked for
and zeroed in the copy, until the copy agrees with the row totals of one snapshot.
"""

import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

from unbasket.domain.results import Progress
from unbasket.errors import StoreCorruptError, StoreError
from unbasket.files import replacing
from unbasket.store import schema
from unbasket.store.reader import DatabaseReader
from unbasket.store.row_codec import TABLES, checked_payload, checksum_of
from unbasket.store.row_totals import COUNTED, TotalsRecord
from unbasket.store.sqlite_errors import translating

_ROWS = 4096  # that are read in a transaction
_SPAN = 2**16  # row numbers that are compared in a transaction
_ATTEMPTS = 8  # to find rows that were zeroed; the last is one transaction, which erasures wait for


def write_copy(source: DatabaseReader, target: Path, progress: Progress | None) -> None:
    """Write a copy of a database; `progress` is called with (rows copied, rows in all)."""
    if target.exists():
        raise StoreError(f"{target} exists. Choose another name, or remove it first")
    try:
        with (
            replacing(target) as partial,
            translating(target),
            closing(sqlite3.connect(partial, isolation_level=None)) as connection,
        ):
            schema.prepare(connection, target, read_only=False)
            connection.execute("PRAGMA synchronous = OFF")  # the file is synced before it gets its name
            connection.execute("PRAGMA journal_mode = OFF")  # a copy that fails is removed as a whole
            Copy(source, DatabaseReader(target, connection), connection).make(progress)
            connection.execute("PRAGMA journal_mode = WAL")
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


class Copy:
    """A copy under way: the newest row of each table that was copied, and the totals of its rows."""

    def __init__(self, source: DatabaseReader, copy: DatabaseReader, connection: sqlite3.Connection) -> None:
        self._source, self._copy, self._connection = source, copy, connection
        self._last = dict.fromkeys(TABLES, 0)
        self._count = self._checksums = self._receipts = 0

    def make(self, progress: Progress | None) -> None:
        """Copy until the copy agrees with one snapshot."""
        self._copy_in_chunks(progress)
        for attempt in range(_ATTEMPTS):
            at_once = attempt == _ATTEMPTS - 1
            with self._source.snapshot() if at_once else nullcontext():
                if attempt:
                    self._zero_erased(at_once)
                with nullcontext() if at_once else self._source.snapshot():
                    for table in TABLES:
                        while self._copy_chunk(table):
                            pass
                    record = self._source.read_record()
            if self._agrees_with(record):
                totals = self._last["baskets"], self._count, self._checksums, self._receipts
                copied = TotalsRecord(*totals, record.cursors)
                self._connection.execute("UPDATE row_totals SET body = ?", (copied.to_bytes(),))
                return
        raise StoreCorruptError(
            f"{self._source.path} is damaged: it has other rows than its row totals say. Restore a backup"
        )

    def _copy_in_chunks(self, progress: Progress | None) -> None:
        for table in TABLES:
            more = True
            while more:
                with self._source.snapshot():
                    rows = self._source.rows_written
                    more = self._copy_chunk(table)
                if progress is not None:
                    progress(min(sum(self._last.values()), rows), rows)

    def _copy_chunk(self, table: str) -> bool:
        """Copy the next rows of a table; return whether there are more. The last one is copied even if zeroed."""
        found = self._source.bodies(table, self._last[table] + 1, _ROWS)
        live = [(row, body) for row, body in found if checked_payload(table, row, body)]
        rows = live if found[-1:] == live[-1:] else [*live, found[-1]]
        with translating(self._copy.path):  # around it is the source's snapshot, whose errors name the source
            self._connection.execute("BEGIN")
            self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")
        if table in COUNTED:
            self._count += len(live)
            self._checksums += sum(checksum_of(body) for _, body in live)
        else:
            self._receipts += len(live)
        if found:
            self._last[table] = found[-1][0]
        return len(found) == _ROWS

    def _zero_erased(self, at_once: bool) -> None:
        """Zero the rows of the copy that were zeroed since they were copied."""
        for table in COUNTED:
            for first in range(1, self._last[table] + 1, _SPAN):
                span = table, first, min(first + _SPAN - 1, self._last[table])
                with nullcontext() if at_once else self._source.snapshot():
                    differ = self._copy.count_live(*span) != self._source.count_live(*span)
                    live = self._source.live_rows(*span) if differ else None
                if live is not None:
                    for row in self._copy.live_rows(*span) - live:
                        self._zero(table, row)

    def _zero(self, table: str, row: int) -> None:
        with translating(self._copy.path):
            body = self._copy.body(table, row)
            self._connection.execute(f"UPDATE {table} SET body = zeroblob(?) WHERE id = ?", (len(body), row))
        self._count -= 1
        self._checksums -= checksum_of(body)

    def _agrees_with(self, record: TotalsRecord) -> bool:
        """Return whether the copy has the rows of the totals, and the baskets that were appended since."""
        since = self._last["baskets"] - record.upto
        appended = self._connection.execute("SELECT body FROM baskets WHERE id > ?", (record.upto,))
        checksums = sum(checksum_of(body) for [body] in appended)
        expected = record.rows + since, record.checksums + checksums, record.receipts
        return (self._count, self._checksums, self._receipts) == expected
