"""The catalog of a shop: its products, their categories, and the hidden items."""

from collections.abc import Collection, Iterable, Iterator

from unbasket.domain.ids import Id, whole_number
from unbasket.domain.results import Product


class Catalog:
    """The products by item, and the items by category. A product is dropped with the last purchase of its item."""

    def __init__(self) -> None:
        self.changes = 0  # number of changes so far, by which caches see that they are stale
        self._products: dict[Id, Product] = {}
        self._members: dict[str, dict[Id, None]] = {}

    def __len__(self) -> int:
        return len(self._products)

    def __iter__(self) -> Iterator[Product]:
        return iter(list(self._products.values()))

    def __contains__(self, item: object) -> bool:
        return isinstance(item, str | int) and self.get(item) is not None

    def get(self, item: Id) -> Product | None:
        """Return the product of an item, in any spelling, or None if the item is not described."""
        product = self._products.get(item)
        if product is None and self._products:
            other = whole_number(item) if isinstance(item, str) else str(item)
            product = None if other is None else self._products.get(other)
        return product

    def __getitem__(self, item: Id) -> Product:
        """Return the product of an item; one without a name if the item is not described."""
        return self.get(item) or Product(item)

    def name(self, item: Id) -> str:
        """Return the name of an item, or its id as text."""
        return self[item].name or str(item)

    def categories(self) -> dict[str, list[Id]]:
        """Return the items of each category."""
        return {category: list(members) for category, members in list(self._members.items())}

    def members(self, category: str) -> Collection[Id]:
        """Return the items of a category; empty if the category is unknown."""
        return self._members.get(category, {})

    def put(self, product: Product) -> None:
        """Add a product, or replace the one of the same item."""
        self.drop(product.item)
        self.changes += 1
        self._products[product.item] = product
        if product.category is not None:
            self._members.setdefault(product.category, {})[product.item] = None

    def put_all(self, products: Iterable[Product]) -> None:
        """Add or replace products: all of them at once."""
        changed = Catalog()
        changed._products = self._products.copy()
        changed._members = {category: members.copy() for category, members in self._members.items()}
        for product in products:
            changed.put(product)
        self._products, self._members = changed._products, changed._members
        self.changes += 1

    def drop(self, item: Id) -> None:
        """Remove the product of an item, if there is one."""
        product = self._products.pop(item, None)
        self.changes += 1
        if product is not None and product.category is not None:
            members = self._members[product.category]
            del members[item]
            if not members:
                del self._members[product.category]


class Availability:
    """The hidden items, which are not recommended but still learned.

    Availability is the shop's own data: an item stays hidden until it is shown, with or without purchases.
    """

    def __init__(self) -> None:
        self.changes = 0  # as of a catalog
        self._hidden: set[Id] = set()

    def __len__(self) -> int:
        return len(self._hidden)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._hidden)

    def __contains__(self, item: object) -> bool:
        return item in self._hidden

    def change(self, hide: Iterable[Id], show: Iterable[Id]) -> tuple[list[Id], list[Id]]:
        """Hide items and show others, at once. Returns those that were not hidden before, and those that were."""
        hidden = [item for item in hide if item not in self._hidden]
        shown = [item for item in show if item in self._hidden]
        self._hidden = self._hidden.union(hidden).difference(shown)
        self.changes += 1
        return hidden, shown
