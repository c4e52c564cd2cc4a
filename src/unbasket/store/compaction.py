"""Giving the room of blank rows back, a piece at a time, so that nobody waits for longer than a piece takes.

Each piece is a transaction of its own. It copies the next rows that are not blank from the front of a table to its
back, blanks them in the front, and deletes blank rows there. When nothing is left in the front, the back is the new
front. Row numbers stay, and so does everything that refers to them.

Deleting rows makes SQLite move others of the same page or of the next two, and leave copies of them in unallocated
parts of pages. So rows are only deleted if all in the pages around them are blank too.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from unbasket.store.schema import PAGE
from unbasket.store.sides import Sides

PIECE = 2**16
"""Bytes of rows that are carried over in a transaction, if nothing asks for more."""

_MARGIN = 5 * PAGE  # bytes of blank rows between those that are deleted and any that are not blank
_LEAST = 200  # bytes, at least, that a longer row has in its own page; the rest is in pages of its own
_SHORTEST = 5  # bytes of the shortest blank row
_SHORT = 64  # bytes: with rows that are shorter, a piece has fewer bytes

_BLANK = "body = zeroblob(length(body))"


class Piece(NamedTuple):
    """What a piece has done: where rows are now, how many blank bytes are gone, and whether the table is done."""

    sides: Sides
    freed: int
    is_last: bool


def carry(connection: sqlite3.Connection, sides: Sides, size: int) -> Piece:
    """Carry over the next rows of a table, of about so many bytes, within a transaction."""
    execute, (front, back, carried) = connection.execute, sides
    most = max(1, size // _SHORT)
    chosen = f"SELECT id, length(body), {_BLANK} FROM {front} WHERE id > ? ORDER BY id LIMIT ?"
    found = execute(chosen, (carried, most + 1)).fetchall()
    rows = _first_of(found[:most], size)
    is_last = len(rows) == len(found)
    upto = rows[-1][0] if rows else carried
    freed = sum(size for row, size, is_blank in rows if is_blank and not (is_last and row == upto))
    if is_last:  # the newest row is kept even if it is blank: the next one is numbered after it
        execute(f"INSERT INTO {back} SELECT * FROM {front} WHERE id > ? AND (id = ? OR NOT {_BLANK})", (carried, upto))
        execute(f"DELETE FROM {front}")
    else:
        execute(f"INSERT INTO {back} SELECT * FROM {front} WHERE id > ? AND id <= ? AND NOT {_BLANK}", (carried, upto))
        execute(f"INSERT OR IGNORE INTO {back} VALUES (?, zeroblob({_SHORTEST}))", (upto,))  # the next one goes on here
        execute(f"UPDATE {front} SET body = zeroblob(length(body)) WHERE id > ? AND id <= ?", (carried, upto))
        execute(f"DELETE FROM {front} WHERE id < ?", (_margin(connection, front, upto),))
    _give_back(connection, 1 + 2 * size // PAGE)
    return Piece(Sides(back, front, 0) if is_last else Sides(front, back, upto), freed, is_last)


def _give_back(connection: sqlite3.Connection, most: int) -> None:
    """Move pages from the end of the file to free ones, and shorten it; Python does one with each statement."""
    [free] = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, most)):
        connection.execute("PRAGMA incremental_vacuum(1)")


def _first_of(rows: list[tuple[int, int, int]], size: int) -> list[tuple[int, int, int]]:
    """The first rows, until they have so many bytes."""
    for count, (_, length, _) in enumerate(rows, 1):
        size -= length
        if size <= 0:
            return rows[:count]
    return rows


def _margin(connection: sqlite3.Connection, front: str, upto: int) -> int:
    """The first of the blank rows, up to a row, that must stay; 0 if all of them."""
    chosen = f"SELECT id, min(length(body), ?) FROM {front} WHERE id <= ? ORDER BY id DESC LIMIT ?"
    rows: Iterable[tuple[int, int]] = connection.execute(chosen, (_LEAST, upto, _MARGIN // 8)).fetchall()
    size = 0
    for row, length in rows:
        size += length
        if size >= _MARGIN:
            return row
    return 0
