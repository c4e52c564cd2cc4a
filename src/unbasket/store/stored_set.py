"""A set of short tuples on disk, one in each row of a table: hidden items, and suppressed items with their users."""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from unbasket.domain.ids import Id
from unbasket.store.writer import Database

StoredTuple = tuple[Id, ...]

_decoder = msgspec.msgpack.Decoder(StoredTuple)


class StoredSet:
    """The tuples of a table, each with its row."""

    def __init__(self, database: Database, table: str, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._database, self._table = database, table
        self._rows: dict[StoredTuple, int] = {}
        self._add_all(payloads)

    def __iter__(self) -> Iterator[StoredTuple]:
        return iter(self._rows)

    def add(self, element: StoredTuple) -> None:
        """Append a row for a tuple that is not in the set."""
        self._rows[element] = self._database.append(self._table, msgspec.msgpack.encode(element))

    def remove(self, element: StoredTuple) -> None:
        """Zero the row of a tuple that is in the set."""
        self._database.zero(self._table, self._rows.pop(element))

    def restore(self, rows: Collection[int] | None) -> None:
        """Restore from disk after an error: changes are in these rows, or anywhere if None."""
        self._rows = {element: row for element, row in self._rows.items() if rows is not None and row not in rows}
        reader = self._database.reader
        self._add_all(reader.payloads(self._table) if rows is None else reader.payloads_of(self._table, rows))

    def _add_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._rows[_decoder.decode(payload)] = row
