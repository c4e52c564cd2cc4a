"""The catalog of an engine: the products by item, and the items of each category."""

from collections.abc import Collection, Iterable, Iterator

from unbasket.domain.ids import Id
from unbasket.domain.results import Product


class Catalog:
    """What is known of items. It is forgotten with the last purchase of an item."""

    def __init__(self) -> None:
        self.changes = 0  # how often something became known, or was forgotten
        self._products: dict[Id, Product] = {}
        self._members: dict[str, dict[Id, None]] = {}

    def __len__(self) -> int:
        return len(self._products)

    def __iter__(self) -> Iterator[Product]:
        return iter(list(self._products.values()))

    def __contains__(self, item: object) -> bool:
        return item in self._products

    def get(self, item: Id) -> Product | None:
        """The product of an item; None if nothing is known of it."""
        return self._products.get(item)

    def __getitem__(self, item: Id) -> Product:
        """The product of an item; one without a name if nothing is known of it."""
        return self.get(item) or Product(item)

    def name(self, item: Id) -> str:
        """What to call an item."""
        return self[item].name or str(item)

    def categories(self) -> dict[str, list[Id]]:
        """The items of each category."""
        return {category: list(members) for category, members in list(self._members.items())}

    def members(self, category: str) -> Collection[Id]:
        """The items of a category; none if there is no such category."""
        return self._members.get(category, {})

    def put(self, product: Product) -> None:
        """Note a product; what was known of the same item is forgotten."""
        self.drop(product.item)
        self.changes += 1
        self._products[product.item] = product
        if product.category is not None:
            self._members.setdefault(product.category, {})[product.item] = None

    def drop(self, item: Id) -> None:
        """Forget what is known of an item."""
        product = self._products.pop(item, None)
        self.changes += 1
        if product is not None and product.category is not None:
            members = self._members[product.category]
            del members[item]
            if not members:
                del self._members[product.category]

    def clear(self) -> None:
        """Forget all of it."""
        for item in list(self._products):
            self.drop(item)


class Availability:
    """The hidden items.

    An item is hidden until it is shown, whether anybody has bought it or not: what is out of stock is the shop's own
    knowledge, and neither comes from a purchase nor goes with one.
    """

    def __init__(self) -> None:
        self.changes = 0  # how often something was hidden or shown
        self._hidden: set[Id] = set()

    def __len__(self) -> int:
        return len(self._hidden)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._hidden)

    def hide(self, items: Iterable[Id]) -> list[Id]:
        """Hide items; returns those that were not hidden."""
        changed = [item for item in items if item not in self._hidden]
        self._hidden.update(changed)
        self.changes += 1
        return changed

    def show(self, items: Iterable[Id]) -> list[Id]:
        """Show items; returns those that were hidden."""
        changed = [item for item in items if item in self._hidden]
        self._hidden.difference_update(changed)
        self.changes += 1
        return changed
