"""A backup: all that remains at one moment, copied while others learn and forget.

Rows are copied by pieces, each read in a transaction of its own, so that no erasure waits for longer than a piece
takes. Rows are only appended or blanked. So when all are copied, the ledger tells whether some were blanked
meanwhile; these are looked for, and blanked in the copy, until the copy is what the ledger of one moment says.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

from unbasket.domain.progress import Progress
from unbasket.errors import StoreCorruptError, StoreError
from unbasket.files import replacing
from unbasket.store import schema
from unbasket.store.reader import Tables
from unbasket.store.row_codec import TABLES, seal_of, unsealed
from unbasket.store.row_totals import COUNTED, Entry
from unbasket.store.sqlite_errors import explained

_ROWS = 4096  # that are read in a transaction
_SPAN = 2**16  # rows that are counted in a transaction
_ROUNDS = 8  # of looking for what was blanked; the last is one transaction, which erasures wait for

_IS_HELD = "body != zeroblob(length(body))"


def write_copy(source: Tables, target: Path, progress: Progress | None) -> None:
    """Write a copy of a database with these tables; `progress` is called with (rows copied, rows in all)."""
    if target.exists():
        raise StoreError(f"{target} exists. Choose another name, or remove it first")
    try:
        with (
            replacing(target) as partial,
            explained(target),
            closing(sqlite3.connect(partial, isolation_level=None)) as connection,
        ):
            schema.prepare(connection, partial, read_only=False)
            connection.execute("PRAGMA synchronous = OFF")  # the file is synced before it gets its name
            Copy(source, connection).make(progress)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


class Copy:
    """A copy on its way: the newest row of each table that was looked at, and what a ledger would say of its rows."""

    def __init__(self, source: Tables, connection: sqlite3.Connection) -> None:
        self._source, self._connection = source, connection
        self._last = dict.fromkeys(TABLES, 0)
        self._count = self._seals = self._receipts = 0

    def make(self, progress: Progress | None) -> None:
        """Copy until it is what there was at one moment."""
        self._copy_by_pieces(progress)
        for turn in range(_ROUNDS):
            at_once = turn == _ROUNDS - 1
            with self._source.moment() if at_once else nullcontext():
                if turn:
                    self._blank_what_is_gone(at_once)
                with nullcontext() if at_once else self._source.moment():
                    for table in TABLES:
                        while self._copy_piece(table):
                            pass
                    entry = self._source.read_entry()
            if self._is_what(entry):
                self._write_ledger()
                return
        raise StoreCorruptError(
            f"{self._source.path} is damaged: it has other rows than its ledger says. Restore a backup"
        )

    def _copy_by_pieces(self, progress: Progress | None) -> None:
        for table in TABLES:
            more = True
            while more:
                with self._source.moment():
                    rows = self._source.rows
                    more = self._copy_piece(table)
                if progress is not None:
                    progress(min(sum(self._last.values()), rows), rows)

    def _copy_piece(self, table: str) -> bool:
        """Copy the next rows of a table; returns whether there are more. The last one is copied even if it is blank."""
        found = self._source.bodies(table, self._last[table] + 1, _ROWS)
        held = [(row, body) for row, body in found if unsealed(table, row, body)]
        rows = held if found[-1:] == held[-1:] else [*held, found[-1]]
        self._connection.execute("BEGIN")
        self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
        self._connection.execute("COMMIT")
        if table in COUNTED:
            self._count += len(held)
            self._seals += sum(seal_of(body) for _, body in held)
        else:
            self._receipts += len(held)
        if found:
            self._last[table] = found[-1][0]
        return len(found) == _ROWS

    def _blank_what_is_gone(self, at_once: bool) -> None:
        """Blank in the copy what was blanked since it was copied."""
        for table in COUNTED:
            for first in range(1, self._last[table] + 1, _SPAN):
                span = table, first, min(first + _SPAN - 1, self._last[table])
                with nullcontext() if at_once else self._source.moment():
                    copied, remaining = self._count_held(*span), self._source.count_held(*span)
                    held = self._source.held(*span) if remaining != copied else None
                if held is not None:
                    self._blank_others(*span, held)

    def _count_held(self, table: str, first: int, last: int) -> int:
        counting = f"SELECT count(*) FROM {table} WHERE id BETWEEN ? AND ? AND {_IS_HELD}"
        count: int = self._connection.execute(counting, (first, last)).fetchone()[0]
        return count

    def _blank_others(self, table: str, first: int, last: int, held: set[int]) -> None:
        """Blank the rows between two that are not among those that remain."""
        chosen = f"SELECT id, body FROM {table} WHERE id BETWEEN ? AND ? AND {_IS_HELD}"
        for row, body in self._connection.execute(chosen, (first, last)).fetchall():
            if row not in held:
                self._connection.execute(f"UPDATE {table} SET body = zeroblob(?) WHERE id = ?", (len(body), row))
                self._count -= 1
                self._seals -= seal_of(body)

    def _is_what(self, entry: Entry) -> bool:
        """Whether the copy has the rows that a ledger counts, and the baskets that came after it was written."""
        since = self._last["baskets"] - entry.upto
        seals = sum(seal_of(body) for body in self._baskets_after(entry.upto))
        expected = entry.rows + since, entry.seals + seals, entry.receipts
        return (self._count, self._seals, self._receipts) == expected

    def _baskets_after(self, row: int) -> Iterator[bytes]:
        for [body] in self._connection.execute("SELECT body FROM baskets WHERE id > ?", (row,)):
            yield body

    def _write_ledger(self) -> None:
        entry = Entry(self._last["baskets"], self._count, self._seals, self._receipts)
        self._connection.execute("UPDATE ledger SET body = ?", (entry.to_bytes(),))
