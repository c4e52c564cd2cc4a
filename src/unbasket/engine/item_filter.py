"""Which items may be recommended: what filters say, by codes."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from unbasket.core.arrays import Codes
from unbasket.domain.ids import Id, Ids, checked_all
from unbasket.domain.validation import Filters
from unbasket.engine.catalog import Availability, Catalog

KEPT = 256  # selections whose codes are kept


class ItemFilter(NamedTuple):
    """Not the banned items and, unless it is None, only the allowed ones."""

    banned: Codes
    allowed: Codes | None


class ItemFilters:
    """Finds the codes of filters, and of what is hidden.

    Those of hidden items, of a category and of a frozen set of items, which are asked for again and again, are kept
    until any item gets or loses its code, or the catalog or the stock changes; in order, as memory is read best.
    """

    def __init__(self, catalog: Catalog, availability: Availability, items: Ids) -> None:
        self._catalog = catalog
        self._availability = availability
        self._items = items
        self._kept: dict[Hashable, Codes] = {}
        self._state = (0, 0, 0)

    def of(self, filters: Filters | None, cart: list[Id] | None) -> ItemFilter | None:
        """What may be recommended to somebody with this cart; None is everything."""
        if filters is None and cart is None and not self._availability:
            return None
        banned = self._codes([*(filters.exclude if filters else []), *(cart or [])])
        if self._availability:
            banned = np.concatenate([banned, self._hidden()])
        if filters is None or (filters.only is None and filters.categories is None):
            return ItemFilter(banned, None)
        self._refresh()
        if filters.only is None:
            return ItemFilter(banned, self._of_categories(filters.categories or []))
        if filters.categories is None:
            return ItemFilter(banned, self._of_items(filters.only))
        wanted = set(filters.categories)
        return ItemFilter(banned, self._codes(item for item in filters.only if self._catalog[item].category in wanted))

    def clear(self) -> None:
        """Keep nothing: a kept selection may name what was forgotten."""
        self._kept = {}

    def _refresh(self) -> None:
        state = (self._items.changes, self._catalog.changes, self._availability.changes)
        if state != self._state or len(self._kept) > KEPT:
            self._kept, self._state = {}, state

    def _hidden(self) -> Codes:
        self._refresh()
        codes = self._kept.get(None)
        if codes is None:
            codes = self._kept[None] = self._codes(self._availability)
        return codes

    def _of_categories(self, categories: list[str]) -> Codes:
        parts = [self._of_category(category) for category in categories]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint32), *parts])

    def _of_category(self, category: str) -> Codes:
        codes = self._kept.get(category)
        if codes is None:
            codes = self._kept[category] = np.sort(self._codes(self._catalog.members(category)))
        return codes

    def _of_items(self, items: list[Id] | frozenset[Id]) -> Codes:
        if not isinstance(items, frozenset):
            return self._codes(items)
        codes = self._kept.get(items)
        if codes is None:
            codes = self._kept[items] = np.sort(self._codes(checked_all(items, "item")))
        return codes

    def _codes(self, items: Iterable[Id]) -> Codes:
        """The codes of those items that somebody has."""
        return self._items.codes.codes_of(items)
