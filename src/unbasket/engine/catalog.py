"""The catalog of an engine: the products by item, and the codes of a category's items."""

from collections.abc import Iterator

import numpy as np

from unbasket.core.arrays import Codes
from unbasket.exchange.ids import Id, Ids
from unbasket.exchange.products import Product


class Catalog:
    """What is known of items. It is forgotten with the last purchase of an item."""

    def __init__(self) -> None:
        self._products: dict[Id, Product] = {}
        self._members: dict[str, dict[Id, None]] = {}
        self._codes: dict[str, Codes] = {}
        self._coded = 0

    def __len__(self) -> int:
        return len(self._products)

    def __iter__(self) -> Iterator[Product]:
        return iter(list(self._products.values()))

    def __contains__(self, item: object) -> bool:
        return item in self._products

    def __getitem__(self, item: Id) -> Product:
        """The product of an item; one without a name if nothing is known of it."""
        return self._products.get(item) or Product(item)

    def name(self, item: Id) -> str:
        """What to call an item."""
        return self[item].name or str(item)

    def categories(self) -> dict[str, list[Id]]:
        """The items of each category."""
        return {category: list(members) for category, members in list(self._members.items())}

    def codes(self, category: str, items: Ids) -> Codes:
        """The codes of a category's items, as far as anybody has them. Kept until an item gets or loses its code."""
        if self._coded != items.changes:
            self._codes, self._coded = {}, items.changes
        if category not in self._members:
            return np.zeros(0, np.uint32)
        codes = self._codes.get(category)
        if codes is None:
            held = [items.codes[item] for item in self._members[category] if item in items.codes]
            codes = self._codes[category] = np.array(held, np.uint32)
        return codes

    def put(self, product: Product) -> None:
        """Note a product; what was known of the same item is forgotten."""
        self.drop(product.item)
        self._products[product.item] = product
        if product.category is not None:
            self._members.setdefault(product.category, {})[product.item] = None
            self._codes.pop(product.category, None)

    def drop(self, item: Id) -> None:
        """Forget what is known of an item."""
        product = self._products.pop(item, None)
        if product is not None and product.category is not None:
            members = self._members[product.category]
            del members[item]
            if not members:
                del self._members[product.category]
            self._codes.pop(product.category, None)

    def clear(self) -> None:
        """Forget all of it."""
        for item in list(self._products):
            self.drop(item)
