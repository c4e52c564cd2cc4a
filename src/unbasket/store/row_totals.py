"""Row totals: the count of rows, and the sum of their checksums, which show a lost or changed row.

They are on disk as one row, which is written with every zeroed row and with rows of all tables but the baskets. Baskets
that were appended since are counted when they are read. The cursors of streams are in the same row, since they change
with nearly every transaction that moves them.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from unbasket.store.row_codec import TABLES

COUNTED = tuple(table for table in TABLES if table != "receipts")
"""The tables whose rows are counted. Receipts are never zeroed: their numbers have no gaps."""

_FORMAT = struct.Struct(">qqqq")  # signed, as in SQLite and the core: a damaged number fits, too


class TotalsRecord(NamedTuple):
    """Totals on disk: the newest basket, the count of rows, the sum of their checksums, the newest receipt.

    Behind them are the cursors, with a checksum and a seal of their own; no bytes if there are none.
    """

    upto: int
    rows: int
    checksums: int
    receipts: int
    cursors: bytes

    @classmethod
    def from_bytes(cls, body: object) -> Self | None:
        """Decode the body of a row; None if it is too short."""
        if not isinstance(body, bytes) or len(body) < _FORMAT.size:
            return None
        upto, rows, checksums, receipts = _FORMAT.unpack_from(body)
        return cls(upto, rows, checksums, receipts, body[_FORMAT.size :])

    def to_bytes(self) -> bytes:
        """Encode the record as the body of a row."""
        return _FORMAT.pack(*self[:-1]) + self.cursors


@dataclass
class RowTotals:
    """Totals in memory: the newest row of each table; of counted tables, the count of rows that are not zeroed, the
    sum of their checksums, their bytes, and the bytes of zeroed rows; and the cursors, as in the record.
    """

    last: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    count: int = 0
    checksums: int = 0
    size: int = 0
    zeroed: int = 0
    cursors: bytes = b""

    def copy(self) -> "RowTotals":
        """Return an independent copy."""
        return RowTotals(self.last.copy(), self.count, self.checksums, self.size, self.zeroed, self.cursors)

    def record(self) -> TotalsRecord:
        """Return the record to write to disk."""
        return TotalsRecord(self.last["baskets"], self.count, self.checksums, self.last["receipts"], self.cursors)

    def add_appended(self, table: str, rows: int, checksums: int, size: int) -> None:
        """Count rows that were appended to a table."""
        self.last[table] += rows
        if table in COUNTED:
            self.add(rows, checksums, size, 0)

    def add(self, rows: int, checksums: int, size: int, zeroed: int) -> None:
        """Count rows that were read, and bytes of zeroed rows."""
        self.count += rows
        self.checksums += checksums
        self.size += size
        self.zeroed += zeroed

    def remove_zeroed(self, checksum: int, size: int) -> None:
        """Count a row as zeroed."""
        self.count -= 1
        self.checksums -= checksum
        self.size -= size
        self.zeroed += size
