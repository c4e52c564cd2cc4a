"""The catalog on disk: one row for each product."""

from collections.abc import Collection, Iterable

import msgspec

from unbasket.domain.ids import Id
from unbasket.domain.results import Product
from unbasket.engine.catalog import Catalog
from unbasket.store.writer import Database

_decoder = msgspec.msgpack.Decoder(Product)


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
        reader = self._database.reader
        self._put_all(reader.payloads("products") if rows is None else reader.payloads_of("products", rows))

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
            self._put(row, _decoder.decode(payload))

    def _put(self, row: int, product: Product) -> None:
        self._rows[product.item] = row
        self._catalog.put(product)
