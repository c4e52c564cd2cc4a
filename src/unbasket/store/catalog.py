"""Names and categories of items: the shop's own knowledge, for people to read."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from unbasket.errors import InvalidFrameError
from unbasket.exchange.ids import Id
from unbasket.store.database import Database


class Product(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item's name and category, as far as they are known."""

    item: Id
    name: str | None
    category: str | None


_decoder = msgspec.msgpack.Decoder(Product)


class Catalog:
    """The products in a database, by item."""

    def __init__(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        self.reload(payloads)

    def reload(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        """Hold what these rows say, and nothing else."""
        self._rows: dict[Id, int] = {}
        self._products: dict[Id, Product] = {}
        for row, payload in payloads:
            self._note(row, _decoder.decode(payload))

    def restore(self, rows: Collection[int], payloads: Iterable[tuple[int, bytes]]) -> None:
        """Hold what these payloads say, and nothing else of these rows."""
        gone = set(rows)
        for item in [item for item, row in self._rows.items() if row in gone] if gone else []:
            del self._rows[item], self._products[item]
        for row, payload in payloads:
            self._note(row, _decoder.decode(payload))

    def __len__(self) -> int:
        return len(self._products)

    def __iter__(self) -> Iterator[Product]:
        return iter(list(self._products.values()))

    def __getitem__(self, item: Id) -> Product:
        """The product of an item; one without a name if nothing is known about it."""
        return self._products.get(item) or Product(item, None, None)

    def name(self, item: Id) -> str:
        """What to call an item."""
        return self[item].name or str(item)

    def categories(self) -> dict[str, list[Id]]:
        """The items of each category."""
        categories: dict[str, list[Id]] = {}
        for product in self:
            if product.category is not None:
                categories.setdefault(product.category, []).append(product.item)
        return categories

    def save(self, products: Iterable[Product], database: Database) -> None:
        """Write what is new; what was known about the same items is erased."""
        for product in products:
            if self._products.get(product.item) != product:
                self.drop(product.item, database)
                self._note(database.append("products", msgspec.msgpack.encode(product)), product)

    def drop(self, item: Id, database: Database) -> None:
        """Erase what is known about an item."""
        row = self._rows.get(item)
        if row is not None:
            database.blank("products", row)
            del self._rows[item], self._products[item]

    def _note(self, row: int, product: Product) -> None:
        self._rows[product.item] = row
        self._products[product.item] = product


def read_products(frame: Any, *, item: str, name: str | None, category: str | None) -> list[Product]:
    """The products in a data frame; if an item is there twice, its last row counts."""
    import polars as pl

    table = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    for column in (item, name, category):
        if column is not None and column not in table.columns:
            raise InvalidFrameError(f"the frame has no column {column!r}; it has {table.columns}")
    if not (table[item].dtype.is_integer() or table[item].dtype == pl.String):
        raise InvalidFrameError(f"column {item!r} has type {table[item].dtype}; ids must be whole numbers or text")
    if table[item].null_count():
        raise InvalidFrameError(f"column {item!r} is null in row {table[item].is_null().arg_max()}")
    nothing = pl.Series([None] * len(table), dtype=pl.String)
    names, categories = (nothing if column is None else table[column].cast(pl.String) for column in (name, category))
    products = zip(table[item].to_list(), names.to_list(), categories.to_list(), strict=True)
    return list({row[0]: Product(*row) for row in products}.values())
