"""The SQLite file, as it is read: rows by their numbers, or all of them, with the check that none is lost."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from unbasket.core import RowReader
from unbasket.domain.progress import Progress
from unbasket.errors import StoreCorruptError, StoreError
from unbasket.files import create
from unbasket.store.loading import BasketReader
from unbasket.store.row_codec import TABLES, seal_of, unsealed
from unbasket.store.row_totals import COUNTED, Entry, Ledger
from unbasket.store.sides import Sides
from unbasket.store.sqlite_errors import explained
from unbasket.store.wal import log_of

_CHUNK = 16_384  # rows that are read at a time


class Loaded(NamedTuple):
    """What a database holds: the baskets, and by table and row what the others hold."""

    baskets: BasketReader
    others: dict[str, dict[int, bytes]]


class Tables:
    """What is in the tables of a file that is open: on which sides rows are, and what a ledger would say of them.

    Whoever writes keeps that up to date.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.ledger = Ledger()
        self.entry: Entry | None = None  # of the ledger, that is on disk
        self.sides: dict[str, Sides] = {}
        self.find_last()

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written."""
        return self.ledger.last["settings"] == 0

    @property
    def rows(self) -> int:
        """How many rows were ever written: whoever has lost some has fewer."""
        return sum(self.ledger.last.values())

    def payload(self, table: str, row: int) -> bytes:
        """What a row holds; an error if there is no such row."""
        return unsealed(table, row, self.body(table, row))

    def last_payload(self, table: str) -> bytes | None:
        """What the newest row of a table holds."""
        last = self.ledger.last[table]
        return self.payload(table, last) if last else None

    def payloads(self, table: str, first: int = 1, last: int = 2**62) -> Iterator[tuple[int, bytes]]:
        """The rows of a table that were not erased, with their numbers: all, or those from `first` to `last`."""
        with explained(self.path):
            for row, body in self._connection.execute(*self.sides[table].select(first, last)):
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
                self.ledger = Ledger()
                self.find_last()
                yield
            finally:
                self._connection.execute("ROLLBACK")

    def bodies(self, table: str, first: int, count: int) -> list[tuple[int, bytes]]:
        """So many rows of a table, blank ones included, from a number on."""
        query, values = self.sides[table].select(first, self.ledger.last[table])
        return self._connection.execute(f"{query} LIMIT ?", (*values, count)).fetchall()

    def count_held(self, table: str, first: int, last: int) -> int:
        """How many rows of these numbers are not blank."""
        query, values = self.sides[table].select(first, last)
        counting = f"SELECT count(*) FROM ({query}) WHERE body != zeroblob(length(body))"
        count: int = self._connection.execute(counting, values).fetchone()[0]
        return count

    def held(self, table: str, first: int, last: int) -> set[int]:
        """The rows of these numbers that are not blank."""
        return {row for row, body in self._connection.execute(*self.sides[table].select(first, last)) if any(body)}

    def load(self, progress: Progress | None) -> Loaded:
        """The rows of all tables but the receipts: of one moment, and none of them lost."""
        with self._checking_pages(), self.moment():
            entry = self.read_entry()
            others = {table: self._table(table) for table in COUNTED if table != "baskets"}
            loaded = Loaded(self._baskets(entry.upto, progress), others)
            self._check_receipts()
        self.entry = entry
        self._check(entry, loaded.baskets.unpacker)
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
        for row, body in self._connection.execute(*self.sides[table].select(1, self.ledger.last[table])):
            payload = unsealed(table, row, body)
            if payload:
                payloads[row] = payload
                self.ledger.count_in(1, seal_of(body), len(body), 0)
            else:
                self.ledger.count_in(0, 0, 0, len(body))
        return payloads

    def _baskets(self, upto: int, progress: Progress | None) -> BasketReader:
        """The rows of baskets, unpacked while the next ones are read."""
        reader, last = BasketReader(upto), self.ledger.last["baskets"]
        cursor = self._connection.execute(*self.sides["baskets"].select(1, last))
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(cursor.fetchmany, _CHUNK)
            while rows := coming.result():
                coming = ahead.submit(cursor.fetchmany, _CHUNK)
                reader.read(rows)
                if progress is not None:
                    progress(rows[-1][0], last)
        found = reader.unpacker
        self.ledger.count_in(found.count, found.checksums, found.size, found.zeroed)
        return reader

    def _check_receipts(self) -> None:
        """Check the seal of each receipt, and that each is there."""
        expected = 1
        for row, body in self._connection.execute("SELECT * FROM receipts ORDER BY id"):
            if row != expected or not unsealed("receipts", row, body):
                raise StoreCorruptError(f"{self.path} is damaged: receipt {expected} is missing. Restore a backup")
            expected += 1

    def _check(self, entry: Entry, baskets: RowReader) -> None:
        """Compare what was read with the ledger: which rows there were when it was written, and all since."""
        ledger = self.ledger
        expected = entry.rows + baskets.count_since, entry.seals + baskets.checksums_since, entry.receipts
        found = ledger.count, ledger.seals, ledger.last["receipts"]
        since = ledger.last["baskets"] - entry.upto
        if found != expected or baskets.count_since != since:  # the ledger is written with every row that is erased
            raise StoreCorruptError(
                f"{self.path} is damaged: it has {ledger.count} rows and {ledger.last['receipts']} receipts where "
                f"{expected[0]} and {entry.receipts} should be, or their checksums differ. Restore a backup"
            )

    def find_last(self) -> None:
        """Find out where rows are, and which are the newest."""
        for table in TABLES:
            self.sides[table], self.ledger.last[table] = Sides.found(self._connection, table)

    def read_entry(self) -> Entry:
        """What the ledger on disk says."""
        row = self._connection.execute("SELECT body FROM ledger").fetchone()
        entry = None if row is None else Entry.from_bytes(row[0])
        if entry is None:
            raise StoreCorruptError(f"{self.path} is damaged: its ledger is missing. Restore a backup")
        return entry

    def body(self, table: str, row: int) -> bytes:
        """A row as it is on disk; an error if there is no such row."""
        side = self.sides[table].of(row)
        found = self._connection.execute(f"SELECT body FROM {side} WHERE id = ?", (row,)).fetchone()
        if found is None:
            raise StoreCorruptError(f"{self.path} is damaged: row {row} of {table} is missing. Restore a backup")
        body: bytes = found[0]
        return body

    def next_row(self, table: str) -> int:
        """The number that the next row of a table will have."""
        return self.ledger.last[table] + 1


def _verdict(path: Path) -> str:
    """What SQLite says of the pages of a file: "ok", or what is wrong."""
    with closing(connect(path, read_only=True)) as connection:
        found: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return found[0][0]


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection to a file, which is created if it is to be written and does not exist."""
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
