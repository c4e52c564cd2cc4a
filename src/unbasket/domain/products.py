"""What a shop says of its items: names, categories, and whatever else it wants shown with a recommendation."""

from typing import Any

import msgspec

from unbasket.domain.ids import Id

Value = str | int | float | bool | None


class Product(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item's name and category, as far as they are known, and its further columns."""

    item: Id
    name: str | None = None
    category: str | None = None
    further: dict[str, Any] = {}

    def value(self, column: str) -> Value:
        """What a column says of the item; None if it says nothing."""
        if column in ("name", "category"):
            return self.name if column == "name" else self.category
        value: Value = self.further.get(column)
        return value
