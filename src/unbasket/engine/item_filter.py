"""Item filters by code: the items that a query may recommend."""

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import numpy as np

from unbasket.core.arrays import Codes
from unbasket.domain.ids import Id, Ids, checked_all
from unbasket.domain.validation import Filters
from unbasket.engine.catalog import Availability, Catalog

CACHE_SIZE = 256  # selections whose codes are cached


class ItemFilter(NamedTuple):
    """The banned items and, unless it is None, the only allowed ones."""

    banned: Codes
    allowed: Codes | None


class ItemFilters:
    """The translation of filters and hidden items to codes.

    The codes of hidden items, of a category and of a frozen set of items are cached until an item gets or loses its
    code, or the catalog or the availability changes. Cached codes are sorted, for sequential access to memory.
    """

    def __init__(
        self,
        catalog: Catalog,
        availability: Availability,
        items: Ids,
        canonical: Callable[[list[Id]], list[Id]],
    ) -> None:
        self._catalog = catalog
        self._availability = availability
        self._items = items
        self._canonical = canonical
        self._cache: dict[Hashable, Codes] = {}
        self._version = (0, 0, 0)

    def of(self, filters: Filters | None, cart: list[Id] | None) -> ItemFilter | None:
        """Return the filter for a query with this cart; None allows every item."""
        if filters is None and cart is None and not self._availability:
            return None
        banned = self._codes(self._canonical([*(filters.exclude if filters else []), *(cart or [])]))
        self._refresh()
        if self._availability:
            banned = np.concatenate([banned, self._cached(None, self._availability)])
        if filters is None or (filters.only is None and filters.categories is None):
            return ItemFilter(banned, None)
        if filters.only is None:
            return ItemFilter(banned, self._of_categories(filters.categories or []))
        if filters.categories is None:
            return ItemFilter(banned, self._of_items(filters.only))
        wanted, only = set(filters.categories), self._canonical(checked_all(filters.only, "item"))
        return ItemFilter(banned, self._codes(item for item in only if self._catalog[item].category in wanted))

    def allowed(self, items: list[Id], filters: Filters | None) -> list[Id]:
        """Return those of some items without a code that a query with these filters may recommend."""
        if not items:
            return []
        exclude = set(self._canonical(filters.exclude)) if filters else set()
        only = None if filters is None or filters.only is None else set(self._canonical(list(filters.only)))
        categories = None if filters is None else filters.categories
        return [
            item
            for item in items
            if item not in self._availability
            and item not in exclude
            and (only is None or item in only)
            and (categories is None or self._catalog[item].category in categories)
        ]

    def clear(self) -> None:
        """Empty the cache, whose keys may contain a forgotten item."""
        self._cache = {}

    def _refresh(self) -> None:
        version = (self._items.changes, self._catalog.changes, self._availability.changes)
        if version != self._version or len(self._cache) > CACHE_SIZE:
            self._cache, self._version = {}, version

    def _of_categories(self, categories: list[str]) -> Codes:
        members = [self._cached(category, self._catalog.members(category)) for category in categories]
        return members[0] if len(members) == 1 else np.concatenate([np.zeros(0, np.uint32), *members])

    def _of_items(self, items: list[Id] | frozenset[Id]) -> Codes:
        if not isinstance(items, frozenset):
            return self._codes(self._canonical(items))
        return self._cached(items, [] if items in self._cache else self._canonical(checked_all(items, "item")))

    def _cached(self, key: Hashable, items: Iterable[Id]) -> Codes:
        codes = self._cache.get(key)
        if codes is None:
            codes = self._cache[key] = np.sort(self._codes(items))
        return codes

    def _codes(self, items: Iterable[Id]) -> Codes:
        """Return the codes of the items that have one; the others are in no basket."""
        return self._items.codes.codes_of(items)
