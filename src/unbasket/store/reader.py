"""Reading the SQLite file: rows by their numbers, or all of them, with the check that none is lost."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.codec import RowReader, gathered, sorted_by_user
from unbasket.core.util import Task
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.results import Progress
from unbasket.engine.workspaces import ThreadPool
from unbasket.errors import MixedIdsError, StoreCorruptError, StoreError
from unbasket.files import create
from unbasket.store.compaction import Spaces
from unbasket.store.receipts import Receipt
from unbasket.store.row_codec import (
    STEP,
    TABLE_SEEDS,
    TABLES,
    checked_payload,
    checksum_of,
    decode_basket,
    with_checksum,
)
from unbasket.store.row_totals import COUNTED, RowTotals, TotalsRecord
from unbasket.store.sqlite_errors import translating
from unbasket.store.wal import wal_path

_CHUNK = 16_384  # rows that are read at a time
_CURSORS = 1  # their row number, for checksum and seal
_THREADS = ThreadPool(2)  # one checks pages, one reads rows
os.register_at_fork(after_in_child=_THREADS.reset)


class Content(NamedTuple):
    """The content of a database: the baskets and their rows, and the payloads of other tables by table and row."""

    baskets: BasketColumns
    rows: Int64s
    others: dict[str, dict[int, bytes]]


class Snapshot:
    """A read transaction. No generator: one that an interrupt leaves would roll back later, on a closed connection."""

    def __init__(self, reader: "DatabaseReader", connection: sqlite3.Connection) -> None:
        self._reader, self._connection = reader, connection

    def __enter__(self) -> None:
        with translating(self._reader.path):
            self._connection.execute("BEGIN")
            try:
                self._reader.totals = RowTotals()
                self._reader.find_spaces()
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        with translating(self._reader.path):
            self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                raise error


class DatabaseReader:
    """The rows of an open file: their totals, and the spaces that they are in. A writer keeps both up to date."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.row_key: bytes | None = None  # of seals, which are not checked without it
        self.totals = RowTotals()
        self.record: TotalsRecord | None = None  # the totals on disk
        self.spaces: dict[str, Spaces] = {}
        self.find_spaces()

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written."""
        return self.totals.last["settings"] == 0

    @property
    def rows_written(self) -> int:
        """The number of rows ever written; a database that has lost some has fewer."""
        return sum(self.totals.last.values())

    def payload(self, table: str, row: int) -> bytes:
        """Return the payload of a row; an error if there is no such row."""
        return checked_payload(table, row, self.body(table, row), self.row_key)

    def payloads(self, table: str, first: int = 1, last: int = 2**62) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a table that are not zeroed, with their numbers: all, or those from `first` to `last`."""
        with translating(self.path):
            for row, body in self._connection.execute(*self.spaces[table].select(first, last)):
                payload = checked_payload(table, row, body, self.row_key)
                if payload:
                    yield row, payload

    def receipts(self, first: int = 1, last: int = 2**62) -> Iterator[Receipt]:
        """Yield all receipts, oldest first, or those with the numbers from `first` to `last`."""
        return (Receipt.from_row(payload) for _, payload in self.payloads("receipts", first, last))

    def last_receipt(self) -> Receipt | None:
        """Return the newest receipt."""
        last = self.totals.last["receipts"]
        with translating(self.path):
            return Receipt.from_row(self.payload("receipts", last)) if last else None

    def payloads_of(self, table: str, rows: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield those of these rows that are there and not zeroed."""
        for row in rows:
            yield from self.payloads(table, row, row)

    def snapshot(self) -> "Snapshot":
        """Return a block that reads from one snapshot, with new totals. An erasure waits for its end."""
        return Snapshot(self, self._connection)

    def bodies(self, table: str, first: int, count: int) -> list[tuple[int, bytes]]:
        """Return up to `count` rows of a table from a number on, zeroed ones included."""
        query, values = self.spaces[table].select(first, self.totals.last[table])
        return self._connection.execute(f"{query} LIMIT ?", (*values, count)).fetchall()

    def count_live(self, table: str, first: int, last: int) -> int:
        """Count the rows of these numbers that are not zeroed."""
        query, values = self.spaces[table].select(first, last)
        counting = f"SELECT count(*) FROM ({query}) WHERE body != zeroblob(length(body))"
        count: int = self._connection.execute(counting, values).fetchone()[0]
        return count

    def live_rows(self, table: str, first: int, last: int) -> set[int]:
        """Return the rows of these numbers that are not zeroed."""
        return {row for row, body in self._connection.execute(*self.spaces[table].select(first, last)) if any(body)}

    def load(self, progress: Progress | None) -> Content:
        """Read all tables but the receipts from one snapshot, and check that no row is lost."""
        with self._checking_pages(), self.snapshot():
            record = self.read_record()
            self.totals.cursors = record.cursors
            others = {table: self._load_table(table) for table in COUNTED if table != "baskets"}
            baskets = self._load_baskets(record.upto, progress)
            self._check_receipts()
        self.record = record
        self._check_totals(record, baskets)
        if baskets.mixed:
            raise MixedIdsError(f"{self.path} holds numbers and texts as ids of one kind")
        return Content(*sorted_columns(baskets), others)

    @contextmanager
    def _checking_pages(self) -> Iterator[None]:
        """Let SQLite check its pages during the block, over another connection; an error if they are damaged."""
        with translating(self.path), Task(partial(_check_pages, self.path)) as checking:
            _THREADS.submit(checking)
            yield
            if checking.result() != "ok":
                raise StoreCorruptError(f"{self.path} is damaged ({checking.result()}). Restore a backup")

    def _load_table(self, table: str) -> dict[int, bytes]:
        """Read and count the rows of a table; return the payloads by row number."""
        payloads = {}
        for row, body in self._connection.execute(*self.spaces[table].select(1, self.totals.last[table])):
            payload = checked_payload(table, row, body, self.row_key)
            if payload:
                payloads[row] = payload
                self.totals.add(1, checksum_of(body), len(body), 0)
            else:
                self.totals.add(0, 0, 0, len(body))
        return payloads

    def _load_baskets(self, upto: int, progress: Progress | None) -> RowReader:
        """Read and count the rows of baskets; those after row `upto` are also counted apart."""
        baskets, last = RowReader(TABLE_SEEDS["baskets"], STEP, upto, self.row_key), self.totals.last["baskets"]
        cursor = self._connection.execute(*self.spaces["baskets"].select(1, last))
        fetch, rows = partial(cursor.fetchmany, _CHUNK), cursor.fetchmany(_CHUNK)
        while rows:
            with Task(fetch) as fetching:  # the next rows, while these are decoded
                _THREADS.submit(fetching)
                decode_baskets(baskets, rows, self.row_key)
                if progress is not None:
                    progress(rows[-1][0], last)
                rows = fetching.result()
        self.totals.add(baskets.count, baskets.checksums, baskets.size, baskets.zeroed)
        return baskets

    def _check_receipts(self) -> None:
        """Check the checksum of each receipt, and that each is there."""
        expected = 1
        for row, body in self._connection.execute("SELECT * FROM receipts ORDER BY id"):
            if row != expected or not checked_payload("receipts", row, body, self.row_key):
                raise StoreCorruptError(f"{self.path} is damaged: receipt {expected} is missing. Restore a backup")
            expected += 1

    def _check_totals(self, record: TotalsRecord, baskets: RowReader) -> None:
        """Compare the rows that were read with the totals on disk and the baskets that were appended since."""
        totals = self.totals
        expected = record.rows + baskets.count_since, record.checksums + baskets.checksums_since, record.receipts
        found = totals.count, totals.checksums, totals.last["receipts"]
        since = totals.last["baskets"] - record.upto
        if found != expected or baskets.count_since != since:  # totals are written with every row that is zeroed
            raise StoreCorruptError(
                f"{self.path} is damaged: it has {totals.count} rows and {totals.last['receipts']} receipts where "
                f"{expected[0]} and {record.receipts} should be, or their checksums differ. Restore a backup"
            )

    def find_spaces(self) -> None:
        """Find the space that rows are in, and the newest row, of each table."""
        for table in TABLES:
            self.spaces[table], self.totals.last[table] = Spaces.find(self._connection, table)

    def read_record(self) -> TotalsRecord:
        """Return the totals on disk."""
        row = self._connection.execute("SELECT body FROM row_totals").fetchone()
        record = None if row is None else TotalsRecord.from_bytes(row[0])
        if record is None:
            raise StoreCorruptError(f"{self.path} is damaged: its row totals are missing. Restore a backup")
        return record

    def cursors(self) -> bytes:
        """Return the payload of the cursors; empty if there are none."""
        body = self.totals.cursors
        return checked_payload("cursors", _CURSORS, body, self.row_key) if body else b""

    def put_cursors(self, payload: bytes) -> None:
        """Put the payload of the cursors into the totals."""
        self.totals.cursors, _ = with_checksum("cursors", _CURSORS, payload, self.row_key)

    def body(self, table: str, row: int) -> bytes:
        """Return the body of a row; an error if there is no such row."""
        space = self.spaces[table].of(row)
        found = self._connection.execute(f"SELECT body FROM {space} WHERE id = ?", (row,)).fetchone()
        if found is None:
            raise StoreCorruptError(f"{self.path} is damaged: row {row} of {table} is missing. Restore a backup")
        body: bytes = found[0]
        return body

    def next_row(self, table: str) -> int:
        """Return the number that the next row of a table will have."""
        return self.totals.last[table] + 1


def decode_baskets(baskets: RowReader, rows: list[tuple[int, bytes]], key: bytes | None = None) -> None:
    """Add rows, given by their numbers and bodies, to the columns of baskets, which have the key of seals or none."""
    wrong = baskets.add(rows)
    if wrong >= 0:
        row, body = rows[wrong]
        decode_basket(checked_payload("baskets", row, body, key))
        raise StoreCorruptError(f"row {row} of baskets holds no basket; it was written by something else")


def sorted_columns(baskets: RowReader) -> tuple[BasketColumns, Int64s]:
    """Return the columns of all baskets, user after user, each user's by position; and the row of each basket."""
    users, items, texts, columns = baskets.columns()
    owners, positions, rows = columns.pop("owners"), columns.pop("positions"), columns.pop("rows")
    sizes, purchases = columns.pop("sizes"), columns.pop("purchases")
    order = sorted_by_user(owners, positions, len(users))
    if not np.array_equal(order, np.arange(len(order))):
        purchases = gathered(purchases, sizes, order)
        owners, rows, sizes = owners[order], rows[order], sizes[order]
        columns = {name: column[order] for name, column in columns.items()}
    baskets_by_user = BasketColumns(
        users=users, items=items, baskets=texts, owners=owners, sizes=sizes, purchases=purchases, **columns
    )
    return baskets_by_user, rows


def _check_pages(path: Path) -> str:
    """Return SQLite's verdict on the pages of a file: "ok", or the damage."""
    with closing(connect(path, read_only=True)) as connection:
        found: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return found[0][0]


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Connect to a file. If it is to be written and does not exist, it is created, for its owner alone.

    SQLite gives the files beside it the same mode.
    """
    if read_only and not path.exists():
        raise StoreError(f"{path} does not exist. Create it with `unbasket import`", "In Python: unbasket.open")
    if path.is_dir():
        raise StoreError(f"{path} is a directory. Choose a file")
    mode = "ro" if read_only else "rw"
    if read_only and not wal_path(path).exists() and not os.access(path.parent, os.W_OK, effective_ids=True):
        mode += "&immutable=1"  # SQLite can't create its shared memory there, and needs none
    if not read_only and not path.exists():
        try:
            create(path.resolve())  # the path may be a link to a file that does not exist yet
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}") from error
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
