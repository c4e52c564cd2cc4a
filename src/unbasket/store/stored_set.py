"""Short entries on disk, one in each row of a table: hidden items, and users with items that they suppressed."""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from unbasket.domain.ids import Id
from unbasket.store.writer import Database

Entry = tuple[Id, ...]

_decoder = msgspec.msgpack.Decoder(Entry)


class EntryRows:
    """Which row of a table has which entry. An entry is there once, or not."""

    def __init__(self, database: Database, table: str, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._database, self._table = database, table
        self._rows: dict[Entry, int] = {}
        self._note_all(payloads)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._rows)

    def add(self, entry: Entry) -> None:
        """Write an entry that is not there."""
        self._rows[entry] = self._database.append(self._table, msgspec.msgpack.encode(entry))

    def drop(self, entry: Entry) -> None:
        """Erase an entry that is there."""
        self._database.blank(self._table, self._rows.pop(entry))

    def restore(self, rows: Collection[int] | None) -> None:
        """After an error, know again what is on disk: what has changed is in these rows, or anywhere."""
        self._rows = {entry: row for entry, row in self._rows.items() if rows is not None and row not in rows}
        tables = self._database.tables
        self._note_all(tables.payloads(self._table) if rows is None else tables.found(self._table, rows))

    def _note_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._rows[_decoder.decode(payload)] = row
