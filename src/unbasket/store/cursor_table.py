"""The cursors on disk: how far a stream outside the database was read or written; one row for each."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from unbasket.errors import InvalidRequestError
from unbasket.store.writer import Database

_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode


class CursorTable:
    """The position of each cursor, and its row. A row holds no personal data."""

    def __init__(self, database: Database, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._database = database
        self.positions: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._put_all(payloads)

    def move(self, cursors: Mapping[str, int]) -> None:
        """Append rows for the new positions, and zero those of the old ones."""
        for name, position in cursors.items():
            if self.positions.get(name) != position:
                self._database.zero("cursors", *([self._rows[name]] if name in self._rows else []))
                self._rows[name] = self._database.append("cursors", msgspec.msgpack.encode((name, position)))
                self.positions[name] = position

    def restore(self, rows: Collection[int]) -> None:
        """Restore from disk after an error: changes are in these rows."""
        for name in [name for name, row in self._rows.items() if row in rows]:
            del self._rows[name], self.positions[name]
        self._put_all(self._database.reader.payloads_of("cursors", rows))

    def _put_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            name, position = _decode(payload)
            self._rows[name], self.positions[name] = row, position


def checked_cursors(cursors: Mapping[str, int]) -> dict[str, int]:
    """Return a caller's cursors, or raise an error that names the invalid one."""
    for name, position in cursors.items():
        is_number = isinstance(position, int) and not isinstance(position, bool)
        if not (isinstance(name, str) and name and is_number and 0 <= position < 2**63):
            raise InvalidRequestError(
                f"a cursor must be a name with a whole number from 0 to 2**63 - 1, not {name!r}: {position!r}"
            )
    return dict(cursors)
