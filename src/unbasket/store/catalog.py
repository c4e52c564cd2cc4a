"""The catalog on disk: one row for each product."""

from collections.abc import Collection, Iterable

import msgspec

from unbasket.engine.catalog import Catalog
from unbasket.exchange.ids import Id
from unbasket.exchange.products import Product
from unbasket.store.database import Database

_decoder = msgspec.msgpack.Decoder(Product)


class CatalogRows:
    """Which row of a database has which product of a catalog; both are changed together."""

    def __init__(self, catalog: Catalog, payloads: Iterable[tuple[int, bytes]]) -> None:
        self._catalog = catalog
        self.reload(payloads)

    def reload(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        """Hold what these rows say, and nothing else."""
        self._catalog.clear()
        self._rows: dict[Id, int] = {}
        self._note_all(payloads)

    def restore(self, rows: Collection[int], payloads: Iterable[tuple[int, bytes]]) -> None:
        """Hold what these payloads say, and nothing else of these rows."""
        gone = set(rows)
        for item in [item for item, row in self._rows.items() if row in gone] if gone else []:
            del self._rows[item]
            self._catalog.drop(item)
        self._note_all(payloads)

    def save(self, product: Product, database: Database) -> None:
        """Write a product; what was known of the same item is erased."""
        self.drop(product.item, database)
        self._note(database.append("products", msgspec.msgpack.encode(product)), product)

    def drop(self, item: Id, database: Database) -> None:
        """Erase what is known of an item."""
        row = self._rows.pop(item, None)
        if row is not None:
            database.blank("products", row)
            self._catalog.drop(item)

    def _note_all(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        for row, payload in payloads:
            self._note(row, _decoder.decode(payload))

    def _note(self, row: int, product: Product) -> None:
        self._rows[product.item] = row
        self._catalog.put(product)
