"""Compaction by pieces: every row that remains is in the file once, wherever a piece has just ended."""

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from unbasket.store import schema
from unbasket.store.compaction import carry
from unbasket.store.sides import Sides

MARK = re.compile(rb"<row(.{8})", re.DOTALL)  # how each row begins, which no other does


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.prepare(connection, path, read_only=False)
        yield connection


ROWS = 1000


def fill(connection: sqlite3.Connection, chance: random.Random, longest: int) -> dict[int, bytes]:
    """Rows of which more than half are blank; returns the others."""
    bodies = {row: b"<row" + chance.randbytes(8 + chance.randrange(longest)) for row in range(1, ROWS + 1)}
    connection.executemany("INSERT INTO baskets VALUES (?, ?)", bodies.items())
    for row in [row for row in bodies if chance.random() < 0.55]:
        connection.execute("UPDATE baskets SET body = zeroblob(?) WHERE id = ?", (len(bodies.pop(row)), row))
    return bodies


def in_file(connection: sqlite3.Connection, path: Path) -> list[bytes]:
    """The marks of all rows in the file, wherever they are."""
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return sorted(MARK.findall(path.read_bytes()))


@pytest.mark.parametrize("longest", [60, 1500, 6000])
@pytest.mark.parametrize("size", [1000, 20_000])
def test_each_row_is_there_once(connection: sqlite3.Connection, path: Path, longest: int, size: int) -> None:
    chance = random.Random(longest + size)
    bodies = fill(connection, chance, longest)
    marks = sorted(body[4:12] for body in bodies.values())
    length, sides, is_last, freed = path.stat().st_size, Sides("baskets", "baskets_2", 0), False, 0
    pieces = 0
    while not is_last:
        pieces += 1
        connection.execute("BEGIN")
        sides, more, is_last = carry(connection, sides, size)
        connection.execute("COMMIT")
        freed += more
        if is_last or chance.random() < 0.3:
            assert in_file(connection, path) == marks
            assert Sides.found(connection, "baskets")[0] == sides  # whoever opens it now goes on there
            assert {row: body for row, body in connection.execute(*sides.select(1, ROWS)) if any(body)} == bodies
    assert sides == ("baskets_2", "baskets", 0) == Sides.found(connection, "baskets")[0]
    assert connection.execute("SELECT count(*) FROM baskets").fetchone() == (0,)
    kept, size = connection.execute("SELECT max(id), sum(length(body)) FROM baskets_2").fetchone()
    assert kept == ROWS
    assert size < sum(map(len, bodies.values())) + longest + 5 * pieces
    assert freed > 0
    assert path.stat().st_size < 0.6 * length + 50_000
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_newest_row_is_kept_even_if_blank(connection: sqlite3.Connection) -> None:
    """The next one is numbered after it."""
    connection.execute("INSERT INTO baskets VALUES (7, zeroblob(50)), (8, zeroblob(60))")
    sides = Sides("baskets", "baskets_2", 0)
    sides, freed, is_last = carry(connection, sides, 1)
    assert (sides.carried, freed, is_last) == (7, 50, False)
    sides, freed, is_last = carry(connection, sides, 1)
    assert (sides, freed, is_last) == (("baskets_2", "baskets", 0), 0, True)
    assert Sides.found(connection, "baskets") == (sides, 8)


class Haunted:
    """A connection behind whose back rows are carried over after each of its statements."""

    def __init__(self, connection: sqlite3.Connection, other: sqlite3.Connection, sides: Sides) -> None:
        self._connection, self._other, self._sides = connection, other, sides

    def execute(self, statement: str) -> list[Any]:
        found = self._connection.execute(statement).fetchall()
        self._sides, *_ = carry(self._other, self._sides, 100)
        return found


def test_the_sides_are_those_of_one_moment(connection: sqlite3.Connection, path: Path) -> None:
    """Or a reader would take the newest rows for lost, if the last piece is carried over between two looks."""
    connection.execute("INSERT INTO baskets VALUES (7, x'07')")
    connection.execute("INSERT INTO baskets_2 VALUES (7, zeroblob(1)), (8, x'08')")
    sides = Sides("baskets_2", "baskets", 7)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        haunted: Any = Haunted(connection, other, sides)
        assert Sides.found(haunted, "baskets") == (sides, 8)
    assert Sides.found(connection, "baskets") == (("baskets", "baskets_2", 0), 8)
