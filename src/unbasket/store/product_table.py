"""The catalog on disk: one row for each product."""

from collections.abc import Collection, Iterable

import msgspec

from unbasket.domain.ids import Id
from unbasket.domain.results import Product
from unbasket.engine.catalog import Catalog
from unbasket.store.writer import Database

_decoder = msgspec.msgpack.Decoder(Product)


class CatalogRows:
    """Which row of a database has which product of a catalog; both are changed together."""

    def __init__(self, catalog: Catalog, database: Database, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._catalog, self._database = catalog, database
        self._rows: dict[Id, int] = {}
        self._note_all(payloads)

    def restore(self, rows: Collection[int] | None) -> None:
        """After an error, hold what the disk says: what has changed is in these rows, or anywhere."""
        gone = set(self._rows.values()) if rows is None else set(rows)
        for item in [item for item, row in self._rows.items() if row in gone] if gone else []:
            del self._rows[item]
            self._catalog.drop(item)
        tables = self._database.tables
        self._note_all(tables.payloads("products") if rows is None else tables.found("products", rows))

    def save(self, products: Iterable[Product]) -> None:
        """Write what is new; what was known of the same items is erased."""
        for product in products:
            if self._catalog[product.item] != product:
                self.drop(product.item)
                self._note(self._database.append("products", msgspec.msgpack.encode(product)), product)

    def drop(self, item: Id) -> None:
        """Erase what is known of an item."""
        row = self._rows.pop(item, None)
        if row is not None:
            self._database.blank("products", row)
            self._catalog.drop(item)

    def _note_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._note(row, _decoder.decode(payload))

    def _note(self, row: int, product: Product) -> None:
        self._rows[product.item] = row
        self._catalog.put(product)
