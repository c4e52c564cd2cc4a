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
    """The rows of products by item. The catalog changes under the model's lock, and its rows before or after that."""

    def __init__(self, catalog: Catalog, database: Database, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._catalog, self._database = catalog, database
        self._rows: dict[Id, int] = {}
        self._outdated: list[int] = []  # rows of products that the catalog has dropped
        self._put_all(payloads)

    def restore(self, rows: Collection[int]) -> None:
        """Restore from disk after an error: changes are in these rows, and in those that were about to be zeroed."""
        changed = {*rows, *self._outdated}
        for item in [item for item, row in self._rows.items() if row in changed] if changed else []:
            del self._rows[item]
            self._catalog.drop(item)
        self._put_all(self._database.reader.payloads_of("products", sorted(changed)))
        self._outdated.clear()

    def write(self, products: Iterable[Product]) -> list[Product]:
        """Write products that are new or changed, and zero the former rows of the same items; return these products."""
        latest = {product.item: product for product in products}
        changed = [product for product in latest.values() if self._catalog[product.item] != product]
        for product in changed:
            self._outdate(product.item)
            self._rows[product.item] = self._database.append("products", msgspec.msgpack.encode(product))
        self.write_changes()
        return changed

    def drop(self, item: Id) -> None:
        """Drop the product of an item from the catalog; `write_changes` zeroes its row."""
        self._outdate(item)
        self._catalog.drop(item)

    def write_changes(self) -> None:
        """Zero the rows of dropped products."""
        self._database.zero("products", *self._outdated)
        self._outdated.clear()

    def _outdate(self, item: Id) -> None:
        row = self._rows.pop(item, None)
        if row is not None:
            self._outdated.append(row)

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

    def restore(self, rows: Collection[int]) -> None:
        """Restore from disk after an error: changes are in these rows."""
        self._rows = {element: row for element, row in self._rows.items() if row not in rows}
        self._add_all(self._database.reader.payloads_of(self._table, rows))

    def _add_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._rows[decode_tuple(payload)] = row
