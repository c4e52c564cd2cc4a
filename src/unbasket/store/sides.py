"""Where the rows of a table are: in two tables of SQLite, its sides, so that a compaction can carry them over."""

import sqlite3
from typing import NamedTuple, Self

SIDED = ("baskets", "products", "hidden", "suppressed")
"""The tables whose rows may be blanked, and so have two sides."""


def other_side(table: str) -> str:
    """The second side; the first has the name of the table itself."""
    return f"{table}_2"


class Sides(NamedTuple):
    """The side that rows are appended to, and the one that those up to row `carried` are in.

    Without a compaction under way, `carried` is 0: all rows are in the front. What is left there of rows that were
    carried is blank.
    """

    front: str
    back: str
    carried: int

    @classmethod
    def found(cls, connection: sqlite3.Connection, table: str) -> tuple[Self, int]:
        """The sides of a table as they are on disk, and its newest row."""
        newest = "SELECT coalesce(max(id), 0), '{0}' FROM {0}"
        if table not in SIDED:
            [(last, _)] = connection.execute(newest.format(table))
            return cls(table, table, 0), last
        both = f"{newest.format(table)} UNION ALL {newest.format(other_side(table))}"  # of one moment: rows may move
        (first, back), (last, front) = sorted(connection.execute(both))
        return cls(front, back, first) if last else cls(table, other_side(table), 0), last

    def of(self, row: int) -> str:
        """The side that a row is in."""
        return self.back if row <= self.carried else self.front

    def select(self, first: int, last: int) -> tuple[str, tuple[int, ...]]:
        """A query for the rows of these numbers, in their order."""
        query = "SELECT id, body FROM {} WHERE id BETWEEN ? AND ?"
        if first > self.carried:
            return query.format(self.front) + " ORDER BY id", (first, last)
        both = f"{query.format(self.back)} UNION ALL {query.format(self.front)}"  # each in the order of its rows
        return both, (first, min(last, self.carried), self.carried + 1, last)
