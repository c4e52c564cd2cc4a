"""Compaction in batches: after each batch, every row that remains is in the file once."""

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from unbasket.store import schema
from unbasket.store.compaction import Spaces, copy_batch

PREFIX = re.compile(rb"<row(.{8})", re.DOTALL)  # the unique start of each row


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
    """Append rows of which more than half are zeroed; returns the others."""
    bodies = {row: b"<row" + chance.randbytes(8 + chance.randrange(longest)) for row in range(1, ROWS + 1)}
    connection.executemany("INSERT INTO baskets VALUES (?, ?)", bodies.items())
    for row in [row for row in bodies if chance.random() < 0.55]:
        connection.execute("UPDATE baskets SET body = zeroblob(?) WHERE id = ?", (len(bodies.pop(row)), row))
    return bodies


def in_file(connection: sqlite3.Connection, path: Path) -> list[bytes]:
    """Return the prefixes of all rows anywhere in the file."""
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return sorted(PREFIX.findall(path.read_bytes()))


@pytest.mark.parametrize("longest", [60, 1500, 6000])
@pytest.mark.parametrize("size", [1000, 20_000])
def test_each_row_is_there_once(connection: sqlite3.Connection, path: Path, longest: int, size: int) -> None:
    chance = random.Random(longest + size)
    bodies = fill(connection, chance, longest)
    prefixes = sorted(body[4:12] for body in bodies.values())
    assert in_file(connection, path) == prefixes
    length, spaces, is_last, freed = path.stat().st_size, Spaces("baskets", "baskets_2", 0), False, 0
    batches = 0
    while not is_last:
        batches += 1
        connection.execute("BEGIN")
        spaces, more, is_last = copy_batch(connection, spaces, size)
        connection.execute("COMMIT")
        freed += more
        if is_last or chance.random() < 0.3:
            assert in_file(connection, path) == prefixes
            assert Spaces.find(connection, "baskets")[0] == spaces  # a process that opens it now goes on there
            assert {row: body for row, body in connection.execute(*spaces.select(1, ROWS)) if any(body)} == bodies
    assert spaces == ("baskets_2", "baskets", 0) == Spaces.find(connection, "baskets")[0]
    assert connection.execute("SELECT count(*) FROM baskets").fetchone() == (0,)
    kept, size = connection.execute("SELECT max(id), sum(length(body)) FROM baskets_2").fetchone()
    assert kept == ROWS
    assert size < sum(map(len, bodies.values())) + longest + 5 * batches
    assert freed > 0
    assert path.stat().st_size < 0.6 * length + 50_000
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_newest_row_is_kept_even_if_zeroed(connection: sqlite3.Connection) -> None:
    """The next row is numbered after it."""
    connection.execute("INSERT INTO baskets VALUES (7, zeroblob(50)), (8, zeroblob(60))")
    spaces = Spaces("baskets", "baskets_2", 0)
    spaces, freed, is_last = copy_batch(connection, spaces, 1)
    assert (spaces.copied_upto, freed, is_last) == (7, 50, False)
    spaces, freed, is_last = copy_batch(connection, spaces, 1)
    assert (spaces, freed, is_last) == (("baskets_2", "baskets", 0), 0, True)
    assert Spaces.find(connection, "baskets") == (spaces, 8)


class CompactedConnection:
    """A connection; another one copies rows after each of its statements."""

    def __init__(self, connection: sqlite3.Connection, other: sqlite3.Connection, spaces: Spaces) -> None:
        self._connection, self._other, self._spaces = connection, other, spaces

    def execute(self, statement: str) -> list[Any]:
        found = self._connection.execute(statement).fetchall()
        self._spaces, *_ = copy_batch(self._other, self._spaces, 100)
        return found


def test_spaces_are_of_one_snapshot(connection: sqlite3.Connection, path: Path) -> None:
    """Otherwise a reader would miss the newest rows if the last batch is copied between two queries."""
    connection.execute("INSERT INTO baskets VALUES (7, x'07')")
    connection.execute("INSERT INTO baskets_2 VALUES (7, zeroblob(1)), (8, x'08')")
    spaces = Spaces("baskets_2", "baskets", 7)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        compacted: Any = CompactedConnection(connection, other, spaces)
        assert Spaces.find(compacted, "baskets") == (spaces, 8)
    assert Spaces.find(connection, "baskets") == (("baskets", "baskets_2", 0), 8)
