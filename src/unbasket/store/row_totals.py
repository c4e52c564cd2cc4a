"""The ledger: how many rows there must be, and the sum of their checksums, so that a lost or changed row shows.

It is on disk as one row that is written with whatever is blanked, and with rows of all tables but the baskets. Baskets
that were appended since are counted when they are read.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from unbasket.store.row_codec import TABLES

COUNTED = tuple(table for table in TABLES if table != "receipts")
"""The tables whose rows are counted; none of the receipts is ever blanked: they are numbered without a gap."""

_FORMAT = struct.Struct(">qqqq")  # signed, as SQLite and the core have numbers: a damaged one fits, too


class Entry(NamedTuple):
    """As of its writing: the newest basket, the count of rows, the sum of their seals, the newest receipt."""

    upto: int
    rows: int
    seals: int
    receipts: int

    @classmethod
    def from_bytes(cls, body: object) -> Self | None:
        """The entry in a row; None if this is none."""
        return cls(*_FORMAT.unpack(body)) if isinstance(body, bytes) and len(body) == _FORMAT.size else None

    def to_bytes(self) -> bytes:
        """The entry as a row."""
        return _FORMAT.pack(*self)


@dataclass
class Ledger:
    """What is in the tables: their newest rows; of those that are counted, how many remain, the sum of their seals,
    their bytes, and the bytes of blank ones.
    """

    last: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    count: int = 0
    seals: int = 0
    size: int = 0
    blank: int = 0

    def copy(self) -> "Ledger":
        """The same, on its own."""
        return Ledger(self.last.copy(), self.count, self.seals, self.size, self.blank)

    def entry(self) -> Entry:
        """What is to be on disk."""
        return Entry(self.last["baskets"], self.count, self.seals, self.last["receipts"])

    def add(self, table: str, rows: int, seals: int, size: int) -> None:
        """So many rows are appended to a table."""
        self.last[table] += rows
        if table in COUNTED:
            self.count_in(rows, seals, size, 0)

    def count_in(self, rows: int, seals: int, size: int, blank: int) -> None:
        """So many rows were found, and so many blank bytes."""
        self.count += rows
        self.seals += seals
        self.size += size
        self.blank += blank

    def take_out(self, seal: int, size: int) -> None:
        """A row is blanked."""
        self.count -= 1
        self.seals -= seal
        self.size -= size
        self.blank += size
