"""The tables of items on disk: products, hidden items, and suppressed items with their users; one row for each."""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from unbasket.domain.ids import Id
from unbasket.domain.results import Product
from unbasket.engine.catalog import Catalog
from unbasket.store.writer import Database

StoredTuple = tuple[Id, ...]

decode_product = msgspec.msgpack.Decoder(Product).decode
decode_tuple = msgspec.msgpack.Decoder(StoredTuple).decode


class ProductTable:
    """The rows of products by item. It changes the catalog and the rows together."""

    def __init__(self, catalog: Catalog, database: Database, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._catalog, self._database = catalog, database
        self._rows: dict[Id, int] = {}
        self._put_all(payloads)

    def restore(self, rows: Collection[int] | None) -> None:
        """Restore from disk after an error: changes are in these rows, or anywhere if None."""
        changed = set(self._rows.values()) if rows is None else set(rows)
        for item in [item for item, row in self._rows.items() if row in changed] if changed else []:
            del self._rows[item]
            self._catalog.drop(item)
        self._put_all(self._database.reader.payloads_of("products", rows))

    def put(self, products: Iterable[Product]) -> None:
        """Write products that are new or changed, and zero the former rows of the same items."""
        for product in products:
            if self._catalog[product.item] != product:
                self.drop(product.item)
                self._put(self._database.append("products", msgspec.msgpack.encode(product)), product)

    def drop(self, item: Id) -> None:
        """Drop the product of an item, and zero its row."""
        row = self._rows.pop(item, None)
        if row is not None:
            self._database.zero("products", row)
            self._catalog.drop(item)

    def _put_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._put(row, decode_product(payload))

    def _put(self, row: int, product: Product) -> None:
        self._rows[product.item] = row
        self._catalog.put(product)


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
        self._add_all(self._database.reader.payloads_of(self._table, rows))

    def _add_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._rows[decode_tuple(payload)] = row
