"""Compaction gives the space of zeroed rows back, one batch at a time: no writer waits longer than a batch.

As in a copying garbage collector, the rows of a table are in two tables of SQLite. Each batch is one transaction. It
copies the next rows that are not zeroed from the from-space to the to-space, zeroes them in the from-space, and deletes
zeroed rows there. When the from-space is empty, the two swap. Row numbers stay, and so does everything that refers to
them.

Deleting rows makes SQLite move others of the same page or of the next two, and leave copies of them in unallocated
parts of pages. So rows are only deleted if all in the pages around them are zeroed too.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple, Self

from unbasket.store.schema import COMPACTED, PAGE, second_table

BATCH_SIZE = 2**16
"""Bytes of rows that a transaction copies, unless more are asked for."""

_MARGIN = 5 * PAGE  # bytes of zeroed rows between deleted rows and any that are not zeroed
_LEAST = 200  # bytes, at least, that a longer row has in its own page; the rest is in pages of its own
_SHORTEST = 5  # bytes of the shortest zeroed row
_SHORT = 64  # bytes: with shorter rows, a batch has fewer bytes

_IS_ZEROED = "body = zeroblob(length(body))"


class Spaces(NamedTuple):
    """The table that rows are appended to, and the table that rows up to `copied_upto` have been copied to.

    Without a compaction under way, `copied_upto` is 0: all rows are in the from-space. A copied row is zeroed there.
    """

    from_space: str
    to_space: str
    copied_upto: int

    @classmethod
    def find(cls, connection: sqlite3.Connection, table: str) -> tuple[Self, int]:
        """Return the spaces of a table as they are on disk, and its newest row."""
        newest = "SELECT coalesce(max(id), 0), '{0}' FROM {0}"
        if table not in COMPACTED:
            [(last, _)] = connection.execute(newest.format(table))
            return cls(table, table, 0), last
        both = f"{newest.format(table)} UNION ALL {newest.format(second_table(table))}"  # one snapshot: rows may move
        (copied, to_space), (last, from_space) = sorted(connection.execute(both))
        return cls(from_space, to_space, copied) if last else cls(table, second_table(table), 0), last

    def of(self, row: int) -> str:
        """Return the table that a row is in."""
        return self.to_space if row <= self.copied_upto else self.from_space

    def select(self, first: int, last: int) -> tuple[str, tuple[int, ...]]:
        """Return a query for the rows of these numbers, in their order."""
        query = "SELECT id, body FROM {} WHERE id BETWEEN ? AND ?"
        if first > self.copied_upto:
            return query.format(self.from_space) + " ORDER BY id", (first, last)
        both = f"{query.format(self.to_space)} UNION ALL {query.format(self.from_space)}"  # each in the order of rows
        return both, (first, min(last, self.copied_upto), self.copied_upto + 1, last)


class Batch(NamedTuple):
    """The result of a batch: where rows are now, how many zeroed bytes are gone, and whether the table is done."""

    spaces: Spaces
    freed: int
    is_last: bool


def copy_batch(connection: sqlite3.Connection, spaces: Spaces, size: int) -> Batch:
    """Copy the next rows of a table, of about `size` bytes, within a transaction."""
    execute, (source, target, copied) = connection.execute, spaces
    most = max(1, size // _SHORT)
    chosen = f"SELECT id, length(body), {_IS_ZEROED} FROM {source} WHERE id > ? ORDER BY id LIMIT ?"
    found = execute(chosen, (copied, most + 1)).fetchall()
    rows = _first_of(found[:most], size)
    is_last = len(rows) == len(found)
    upto = rows[-1][0] if rows else copied
    freed = sum(size for row, size, is_zeroed in rows if is_zeroed and not (is_last and row == upto))
    copy = f"INSERT INTO {target} SELECT * FROM {source} WHERE id > ? AND id <= ? AND"
    if is_last:  # the newest row is kept even if it is zeroed: the next row is numbered after it
        execute(f"{copy} (id = ? OR NOT {_IS_ZEROED})", (copied, upto, upto))
        execute(f"DELETE FROM {source}")
    else:
        execute(f"{copy} NOT {_IS_ZEROED}", (copied, upto))
        execute(f"INSERT OR IGNORE INTO {target} VALUES (?, zeroblob({_SHORTEST}))", (upto,))  # marks where to go on
        execute(f"UPDATE {source} SET body = zeroblob(length(body)) WHERE id > ? AND id <= ?", (copied, upto))
        execute(f"DELETE FROM {source} WHERE id < ?", (_first_to_keep(connection, source, upto),))
    _shrink_file(connection, 1 + 2 * size // PAGE)
    return Batch(Spaces(target, source, 0) if is_last else Spaces(source, target, upto), freed, is_last)


def _shrink_file(connection: sqlite3.Connection, most: int) -> None:
    """Move pages from the end of the file to free ones, and truncate it; Python moves one with each statement."""
    [free] = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, most)):
        connection.execute("PRAGMA incremental_vacuum(1)")


def _first_of(rows: list[tuple[int, int, int]], size: int) -> list[tuple[int, int, int]]:
    """Return the first rows that have `size` bytes together."""
    for count, (_, length, _) in enumerate(rows, 1):
        size -= length
        if size <= 0:
            return rows[:count]
    return rows


def _first_to_keep(connection: sqlite3.Connection, source: str, upto: int) -> int:
    """Return the first of the zeroed rows up to `upto` that must stay as a margin; 0 if all of them."""
    chosen = f"SELECT id, min(length(body), ?) FROM {source} WHERE id <= ? ORDER BY id DESC LIMIT ?"
    rows: Iterable[tuple[int, int]] = connection.execute(chosen, (_LEAST, upto, _MARGIN // 8)).fetchall()
    size = 0
    for row, length in rows:
        size += length
        if size >= _MARGIN:
            return row
    return 0
