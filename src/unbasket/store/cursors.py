"""Cursors: how far a stream outside the database was read or written. They are stored with the row totals."""

from collections.abc import Mapping

import msgspec

from unbasket.errors import InvalidRequestError
from unbasket.store.writer import Database

_decode = msgspec.msgpack.Decoder(dict[str, int]).decode


class StoredCursors:
    """The position of each cursor, by its name, in memory and on disk. It is no personal data."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.positions = self._read()

    def move(self, cursors: Mapping[str, int]) -> None:
        """Move cursors to new positions, in the transaction that is open."""
        moved = {**self.positions, **cursors}
        if moved != self.positions:
            self.positions = moved
            self._database.put_cursors(msgspec.msgpack.encode(moved))

    def restore(self) -> None:
        """Take the positions that are stored, after an error."""
        self.positions = self._read()

    def _read(self) -> dict[str, int]:
        payload = self._database.reader.cursors()
        return _decode(payload) if payload else {}


def checked_cursors(cursors: Mapping[str, int]) -> dict[str, int]:
    """Return a caller's cursors, or raise an error that names the invalid one."""
    for name, position in cursors.items():
        is_number = isinstance(position, int) and not isinstance(position, bool)
        if not (isinstance(name, str) and name and is_number and 0 <= position < 2**63):
            raise InvalidRequestError(
                f"a cursor must be a name with a whole number from 0 to 2**63 - 1, not {name!r}: {position!r}"
            )
    return dict(cursors)
